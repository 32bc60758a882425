#![forbid(unsafe_code)]
//! A permitted call on its way to its children: everything prepared, then recorded, then forked.

use super::decide::Decided;
use super::given::{Given, given};
use super::prepare::{Prepared, Preparing};
use super::{Refusal, Supervisor, confine, records};
use crate::audit::{Decision, Kind, Record};
use crate::cgroup::RunGroup;
use crate::child::Child;
use crate::in_force::{Identity, executable_number};
use crate::log;
use crate::rlimit::Rlimits;
use crate::supervisor::run::{Course, Step};
use crate::sys::process;
use gloveport_contract::catalog::{Action, Approval};
use gloveport_contract::packet::{Enforcement, Event, RefusalCode, Run};
use gloveport_contract::plan::{Plan, StepKind};
use nix::fcntl::OFlag;
use nix::sched::CloneFlags;
use nix::sys::stat::Mode;
use nix::unistd::{ForkResult, Gid, Pid, Uid, fchown, pipe2};
use std::ffi::CString;
use std::io;
use std::time::Instant;

/// What every program finds, before what its action declares.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin";

/// What getppid(2) says in a PID namespace about a parent outside.
const OUTSIDE: Pid = Pid::from_raw(0);

/// Everything that a run needs, before anything of it exists.
pub struct Launch<'a> {
    action: &'a Action,
    plan: Plan<'a>,
    identity: Identity,
    steps: Vec<Prepared<'a>>,
    given: Vec<Given>,
    enforcement: Enforcement,
    takes_content: bool,
}

impl<'a> Launch<'a> {
    /// Prepares every step.
    ///
    /// # Errors
    /// What this host lacks.
    pub fn prepare(
        supervisor: &Supervisor<'_>,
        preparing: Preparing<'a>,
        decided: Decided<'a>,
        request: &Run,
    ) -> Result<Self, Refusal> {
        let Decided { action, plan } = decided;
        let unsupported = |detail| Refusal { code: RefusalCode::Unsupported, detail };
        preparing.can_ask(action).map_err(unsupported)?;
        let identity = preparing.in_force.identity(action).map_err(unsupported)?;
        let mut enforcement = Enforcement {
            run_as: identity.name.clone(),
            no_new_privs: true,
            landlock_abi: preparing.host.landlock_abi,
            seccomp: "default".into(),
            one_shot_exec: true,
            cgroup: false,
            network: "none".into(),
            absent: identity.absent.clone(),
            lacking: Vec::new(),
            same_user: preparing.same_user,
        };
        let temporary = preparing.temporary(&plan, &identity)?;
        let steps = plan
            .steps
            .iter()
            .map(|step| preparing.step(action, step, &identity, temporary.as_ref(), &mut enforcement))
            .collect::<Result<_, _>>()?;
        let given = plan
            .steps
            .iter()
            .map(|step| given(supervisor, action, step, request, temporary.as_ref()))
            .collect::<Result<_, _>>()?;
        let takes_content = request.content.is_some();
        Ok(Self { action, plan, identity, steps, given, enforcement, takes_content })
    }

    /// The action.
    pub fn action(&self) -> &'a Action {
        self.action
    }

    /// What would run.
    pub fn plan(&self) -> &Plan<'a> {
        &self.plan
    }

    /// Records the decision, starts the run and sees it through.
    pub fn see_through(mut self, supervisor: &Supervisor<'_>, id: String, begun: Instant, record: Record) {
        let group = self.make_group(supervisor);
        self.enforcement.cgroup = group.is_some();
        let record = Record {
            kind: Kind::Accepted,
            run: Some(id.clone()),
            decision: Some(Decision::Allow),
            enforcement: Some((&self.enforcement).into()),
            ..record
        };
        let refuse = |code, detail: String| {
            let refusal = Refusal { code, detail };
            let receipt = supervisor.refused(&refusal, false, Record { enforcement: None, ..record.clone() });
            let detail = records::short(&refusal.detail);
            supervisor.send(&Event::Refused { code, detail, receipt });
        };
        // Nothing runs that is not in the chain.
        if let Err(error) = supervisor.audit.append(&record) {
            return refuse(RefusalCode::Audit, error.to_string());
        }
        let steps = match self.fork(supervisor, group.is_some()) {
            Ok(steps) => steps,
            Err(error) => {
                return refuse(RefusalCode::Internal, format!("the run could not be forked: {error}"));
            }
        };
        let course = match Course::new(supervisor, steps, group, begun) {
            Ok(course) => course,
            Err(error) => return refuse(RefusalCode::Internal, error.to_string()),
        };
        if let Err(error) = confine::confine(supervisor.options.same_user, &supervisor.host.supervisor_filter)
        {
            return refuse(RefusalCode::Internal, error.to_string());
        }
        if self.action.approval == Approval::Required
            && let Err(Refusal { code, detail }) = supervisor.same_catalog()
        {
            return refuse(code, detail);
        }
        let accepted = Event::Accepted {
            run: id,
            deadline_ms: u64::try_from(self.plan.timeout.as_millis()).unwrap_or(u64::MAX),
            enforcement: self.enforcement,
        };
        course.run(accepted, self.plan.timeout, self.action, record);
    }

    fn make_group(&self, supervisor: &Supervisor<'_>) -> Option<RunGroup> {
        let made = supervisor.host.cgroups.as_ref()?.make(Pid::this(), &self.action.limits);
        made.inspect_err(|error| log::warning(format_args!("no cgroup for this run: {error}"))).ok()
    }

    /// Forks the children of all steps; each waits for its turn.
    fn fork(&mut self, supervisor: &Supervisor<'_>, has_group: bool) -> io::Result<Vec<Step>> {
        let host = supervisor.host;
        let limits_memory = has_group && host.cgroups.as_ref().is_some_and(|cgroups| cgroups.limits_memory());
        let environment = self.environment(supervisor)?;
        let mut forked = Vec::new();
        let parts = self.plan.steps.iter().zip(self.steps.drain(..)).zip(self.given.drain(..));
        for (index, ((planned, prepared), given)) in parts.enumerate() {
            let (gate, gate_write) = pipe2(OFlag::O_CLOEXEC)?;
            let (report_read, report) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
            let (stdout_read, stdout) = pipe2(OFlag::O_CLOEXEC)?;
            let (stderr_read, stderr) = pipe2(OFlag::O_CLOEXEC)?;
            let (stdin, stdin_write) = if self.takes_content && index == 0 {
                let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
                (read, Some(write))
            } else {
                (nix::fcntl::open("/dev/null", OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?, None)
            };
            let identity = (!supervisor.options.same_user).then_some(&self.identity);
            if let Some(identity) = identity {
                // The pipes are the program's own, so that opening /dev/stdout again works.
                let (uid, gid) = (Some(Uid::from_raw(identity.uid)), Some(Gid::from_raw(identity.gid)));
                fchown(&stdout, uid, gid)?;
                fchown(&stderr, uid, gid)?;
                if stdin_write.is_some() {
                    fchown(&stdin, uid, gid)?;
                }
            }
            let mut variables = environment.clone();
            variables.extend(given.temporary.map(|path| CString::new(format!("TMPDIR={path}"))).transpose()?);
            let child = Child {
                gate,
                report,
                stdio: [stdin, stdout, stderr],
                given: given.descriptors,
                program: prepared.program.file,
                ruleset: prepared.ruleset,
                filter: prepared.filter,
                page: host.page,
                identity,
                bounding: prepared.bounding,
                network_namespace: prepared.network_namespace,
                own_signals_only: prepared.own_signals_only,
                rlimits: Rlimits::of(&self.action.limits, host.quarter, limits_memory),
                open_files: executable_number(self.action),
                cwd: &self.plan.cwd,
                paths: &self.plan.paths,
                argv: strings(planned.argv.iter().cloned())?,
                environment: variables,
                supervisor: if prepared.isolate_pids { OUTSIDE } else { Pid::this() },
            };
            let forked_child = if prepared.isolate_pids {
                process::fork_into(CloneFlags::CLONE_NEWPID)?
            } else {
                process::fork()?
            };
            let pid = match forked_child {
                ForkResult::Child => child.run(),
                ForkResult::Parent { child } => child,
            };
            let streams = [Some(stdout_read), Some(stderr_read), stdin_write].into_iter().flatten().collect();
            forked.push(Step::new(planned.name.to_owned(), pid, gate_write, report_read, streams)?);
        }
        Ok(forked)
    }

    fn environment(&self, supervisor: &Supervisor<'_>) -> io::Result<Vec<CString>> {
        let home = supervisor.options.paths.empty_home.to_string_lossy();
        let name = &self.identity.name;
        let mut variables = vec![
            format!("PATH={PATH}"),
            "LANG=C.UTF-8".to_owned(),
            "TZ=UTC".to_owned(),
            format!("HOME={home}"),
            format!("USER={name}"),
            format!("LOGNAME={name}"),
        ];
        if self.plan.steps.iter().any(|step| matches!(step.kind, StepKind::Handler(_))) {
            variables.push(format!("GLOVEPORT_MAX_OUTPUT={}", self.action.max_output()));
        }
        for (name, value) in self.action.env.iter() {
            let prefix = format!("{name}=");
            variables.retain(|variable| !variable.starts_with(&prefix));
            variables.push(format!("{prefix}{value}"));
        }
        strings(variables.into_iter().map(String::into_bytes))
    }
}

/// Strings for exec. The contract has refused NUL; a mistake there must not cut a string short here.
fn strings(texts: impl Iterator<Item = Vec<u8>>) -> io::Result<Vec<CString>> {
    texts.map(|text| CString::new(text).map_err(io::Error::from)).collect()
}
