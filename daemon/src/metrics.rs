#![forbid(unsafe_code)]
//! Counters for Prometheus, in its text format 0.0.4. They are served on an address of their own, and hold
//! names and numbers only: no argument, no output, no caller.

use crate::policy::Policy;
use crate::run::report::{Failure, Report};
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What has happened since the start. Cheap to clone.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Counters>);

#[derive(Default)]
struct Counters {
    actions: Mutex<BTreeMap<String, Action>>,
    refused: Mutex<BTreeMap<String, u64>>,
    connections: AtomicU64,
    in_progress: AtomicU64,
}

#[derive(Default)]
struct Action {
    results: BTreeMap<&'static str, u64>,
    time: Duration,
    output: u64,
    redactions: u64,
}

/// Counts something as present for as long as it lives.
pub struct Present(Metrics, fn(&Counters) -> &AtomicU64);

impl Drop for Present {
    fn drop(&mut self) {
        (self.1)(&self.0.0).fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// A connection.
    pub fn connection(&self) -> Present {
        self.present(|counters| &counters.connections)
    }

    /// A run in progress.
    pub fn run(&self) -> Present {
        self.present(|counters| &counters.in_progress)
    }

    fn present(&self, gauge: fn(&Counters) -> &AtomicU64) -> Present {
        gauge(&self.0).fetch_add(1, Ordering::Relaxed);
        Present(self.clone(), gauge)
    }

    /// A run of a known action has ended, or did not come to be.
    pub fn ended(&self, action: &str, result: &Result<Report, Failure>, time: Duration) {
        let name = match result {
            Ok(report) if report.timed_out => "timeout",
            Ok(report) if report.success => "success",
            Ok(_) => "failed",
            Err(Failure::Refused { .. } | Failure::Invalid(_)) => "refused",
            Err(Failure::Busy) => "busy",
            Err(Failure::Helper(_)) => "no_helper",
        };
        let mut actions = self.0.actions.lock().unwrap_or_else(PoisonError::into_inner);
        let action = actions.entry(action.to_owned()).or_default();
        *action.results.entry(name).or_default() += 1;
        action.time += time;
        for step in result.iter().flat_map(|report| &report.steps) {
            action.output += step.stdout_bytes + step.stderr_bytes;
            action.redactions += step.redactions;
        }
    }

    /// The daemon refused something by this rule of its own.
    pub fn refused(&self, rule: &str) {
        let mut refused = self.0.refused.lock().unwrap_or_else(PoisonError::into_inner);
        *refused.entry(rule.to_owned()).or_default() += 1;
    }

    /// The router of the metrics listener.
    pub fn router(self, policy: Policy) -> Router {
        let page = async move || ([(CONTENT_TYPE, "text/plain; version=0.0.4")], self.page(&policy));
        Router::new().route("/metrics", get(page))
    }

    fn page(&self, policy: &Policy) -> String {
        let snapshot = policy.snapshot();
        let mut page = Page::default();
        let number = |value: bool| u64::from(value);
        page.gauge("catalog_in_force", "Whether a catalogue is in force.", number(snapshot.catalog.is_ok()));
        let unsupported = snapshot.unsupported.len() as u64;
        page.gauge("unsupported_actions", "Actions that this host cannot run.", unsupported);
        let connections = self.0.connections.load(Ordering::Relaxed);
        page.gauge("connections", "Connections of clients.", connections);
        let in_progress = self.0.in_progress.load(Ordering::Relaxed);
        page.gauge("runs_in_progress", "Calls that have been sent to the helper.", in_progress);
        self.add_actions(&mut page);
        page.head("daemon_refusals_total", "counter", "Calls that the daemon refused itself, by rule.");
        for (rule, count) in self.0.refused.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            page.line("daemon_refusals_total", &[("rule", rule)], count);
        }
        page.0
    }

    fn add_actions(&self, page: &mut Page) {
        let actions = self.0.actions.lock().unwrap_or_else(PoisonError::into_inner);
        page.head("runs_total", "counter", "Runs by action and result.");
        for (name, action) in actions.iter() {
            for (result, count) in &action.results {
                page.line("runs_total", &[("action", name), ("result", result)], count);
            }
        }
        page.head("run_seconds_total", "counter", "Time from call to result.");
        for (name, action) in actions.iter() {
            page.line("run_seconds_total", &[("action", name)], action.time.as_secs_f64());
        }
        page.head("output_bytes_total", "counter", "Raw bytes that programs wrote.");
        for (name, action) in actions.iter() {
            page.line("output_bytes_total", &[("action", name)], action.output);
        }
        page.head("redactions_total", "counter", "Places that were redacted.");
        for (name, action) in actions.iter() {
            page.line("redactions_total", &[("action", name)], action.redactions);
        }
    }
}

/// The page while it is written.
#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP gloveport_{name} {help}\n# TYPE gloveport_{name} {kind}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "gauge", help);
        self.line(name, &[], value);
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let label = |(key, value): &(&str, &str)| {
            format!("{key}=\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
        };
        let labels = match labels {
            [] => String::new(),
            labels => format!("{{{}}}", labels.iter().map(label).collect::<Vec<_>>().join(",")),
        };
        let _ = writeln!(self.0, "gloveport_{name}{labels} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::helper::Peer;
    use crate::mcp::fixtures::report;
    use crate::paths::Paths;
    use std::path::Path;

    #[test]
    fn the_page_counts_what_happened() {
        let metrics = Metrics::default();
        metrics.ended("a", &Ok(report("four")), Duration::from_millis(500));
        metrics.ended("a", &Err(Failure::Busy), Duration::ZERO);
        metrics.refused("sc\"ope");
        let open = metrics.connection();
        drop(metrics.connection());
        let policy = Policy::new(Paths::for_state(Path::new("/nonexistent")), Peer::Root);
        let page = metrics.page(&policy);
        for line in [
            "gloveport_catalog_in_force 0",
            "gloveport_connections 1",
            "gloveport_runs_total{action=\"a\",result=\"busy\"} 1",
            "gloveport_runs_total{action=\"a\",result=\"success\"} 1",
            "gloveport_run_seconds_total{action=\"a\"} 0.5",
            "gloveport_output_bytes_total{action=\"a\"} 4",
            "gloveport_daemon_refusals_total{rule=\"sc\\\"ope\"} 1",
        ] {
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
        drop(open);
        assert!(metrics.page(&policy).contains("gloveport_connections 0"));
    }
}
