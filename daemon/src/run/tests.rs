#![forbid(unsafe_code)]
//! The runner against a helper that is played here, over a real socket.

use super::report::{Filters, StepStatus};
use super::*;
use crate::helper::HelperError;
use gloveport_contract::packet::{Caller, Enforcement, Event, Outcome, Receipt, Run, Usage};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketType,
};
use std::io::{IoSlice, PipeWriter, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const ACTION: &str = r#"{"name": "show", "description": "d", "risk": "read", "exec": ["/bin/cat", "{text}"],
    "params": {"text": {"type": "string"}, "key": {"type": "string", "optional": true, "secret": true}},
    "filters": ["match", "tail"], "max_output": "1KB"}"#;

/// The connection of one run, at the helper's side.
struct Side(OwnedFd);

impl Side {
    fn receive(&self) -> Option<Request> {
        let mut buffer = vec![0; 256 * 1024];
        let (length, _) = rustix::net::recv(&self.0, &mut buffer[..], RecvFlags::empty()).expect("recv");
        (length > 0).then(|| Request::decode(&buffer[..length]).expect("request"))
    }

    fn send(&self, event: &Event) {
        self.send_with(event, &[]);
    }

    fn send_with(&self, event: &Event, descriptors: &[&OwnedFd]) {
        let descriptors: Vec<_> = descriptors.iter().map(|fd| fd.as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
        }
        let packet = event.encode().expect("event");
        rustix::net::sendmsg(&self.0, &[IoSlice::new(&packet)], &mut control, SendFlags::NOSIGNAL)
            .expect("send");
    }

    fn accepted(&self) {
        let (run, deadline_ms, enforcement) = ("1".into(), 30_000, Enforcement::default());
        self.send(&Event::Accepted { run, deadline_ms, enforcement });
    }

    /// Starts a step and returns the write ends of its pipes.
    fn started(&self, index: u32) -> (PipeWriter, PipeWriter) {
        let (stdout, out) = std::io::pipe().expect("pipe");
        let (stderr, err) = std::io::pipe().expect("pipe");
        self.send_with(&Event::StepStarted { index }, &[&stdout.into(), &stderr.into()]);
        (out, err)
    }

    fn step_ended(&self, index: u32, outcome: Outcome) {
        self.send(&Event::StepEnded { index, outcome, killed_by: None, usage: Usage::default() });
    }

    fn ended(&self) {
        self.send(&Event::Ended { receipt: Receipt { seq: 9, hash: [1; 32] } });
    }

    /// A whole run that prints this.
    fn play(&self, stdout: &[u8]) {
        self.accepted();
        let (mut out, err) = self.started(0);
        out.write_all(stdout).expect("write");
        drop((out, err));
        self.step_ended(0, Outcome::Exited(0));
        self.ended();
    }
}

/// A helper that answers `Status` itself and gives runs to `script`, each on a thread of its own.
struct Helper {
    dir: PathBuf,
    notes: Arc<Mutex<Vec<Note>>>,
}

impl Helper {
    fn start(script: impl Fn(Run, &Side) + Send + Sync + 'static) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("gloveport-run-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("directory");
        std::fs::write(dir.join("catalog.json"), format!(r#"{{"format": 1, "actions": [{ACTION}]}}"#))
            .expect("catalogue");
        let listener = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).expect("socket");
        let address = rustix::net::SocketAddrUnix::new(dir.join("helper.sock")).expect("address");
        rustix::net::bind(&listener, &address).expect("bind");
        rustix::net::listen(&listener, 8).expect("listen");
        let notes = Arc::new(Mutex::new(Vec::new()));
        let helper = Self { dir: dir.clone(), notes: notes.clone() };
        let script = Arc::new(script);
        std::thread::spawn(move || {
            while let Ok(connection) = rustix::net::accept(&listener) {
                let (script, dir, notes) = (script.clone(), dir.clone(), notes.clone());
                std::thread::spawn(move || serve(&Side(connection), &dir, &notes, &*script));
            }
        });
        helper
    }

    async fn runner(&self) -> Runner {
        let paths = Paths::for_state(&self.dir);
        let policy = Policy::new(paths.clone(), Peer::SameUser);
        policy.refresh().await.expect("status");
        Runner::new(&paths, Peer::SameUser, policy)
    }

    async fn run(&self, call: Call) -> Result<Report, Failure> {
        self.runner().await.run(call, Arc::default(), mpsc::channel(16).0).await
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn serve(side: &Side, dir: &Path, notes: &Mutex<Vec<Note>>, script: &dyn Fn(Run, &Side)) {
    match side.receive() {
        Some(Request::Status { .. }) => {
            let catalog = std::fs::read(dir.join("catalog.json")).unwrap_or_default();
            side.send(&Event::StatusReply {
                version: VERSION,
                digest: Some(hmac_sha256::Hash::hash(&catalog)),
                reason: None,
                layers: Vec::new(),
                unsupported: Vec::new(),
                more: false,
                runs: 0,
            });
        }
        Some(Request::Run(run)) => script(*run, side),
        Some(Request::Note(note)) => notes.lock().expect("notes").push(note),
        Some(Request::End { .. }) | None => {}
    }
}

fn call() -> Call {
    let text = packet::Argument { name: "text".into(), value: "x".into() };
    Call {
        action: "show".into(),
        args: vec![text],
        content: None,
        filters: Filters::default(),
        token: None,
        caller: Caller::default(),
    }
}

#[tokio::test]
async fn a_run_is_sent_rendered_and_its_output_comes_back_redacted() {
    let helper = Helper::start(|run, side| {
        assert_eq!(run.argv, [[b"/bin/cat".to_vec(), b"x".to_vec()]]);
        side.play(b"a\npassword=hunter2\n");
    });
    let report = helper.run(call()).await.expect("report");
    assert!(report.success && report.exit_code == 0 && report.receipt.seq == 9);
    assert_eq!(report.deadline, Duration::from_secs(30));
    let step = &report.steps[0];
    assert_eq!((step.name.as_str(), step.status), ("main", StepStatus::Success));
    assert_eq!((step.stdout.as_str(), step.redactions), ("a\npassword=[redacted]\n", 1));
    assert_eq!(step.stdout_bytes, 19);
}

#[tokio::test]
async fn filters_and_secret_arguments_are_applied() {
    let helper = Helper::start(|_, side| side.play(b"one\ntwo s-3-c\nthree\n"));
    let mut call = call();
    call.args.push(packet::Argument { name: "key".into(), value: "s-3-c".into() });
    call.filters.matching = Some("^t".into());
    call.filters.tail = Some(2);
    let report = helper.run(call).await.expect("report");
    assert_eq!(report.steps[0].stdout, "two [redacted]\nthree\n");
}

#[tokio::test]
async fn output_over_the_budget_is_cut_while_it_is_read() {
    let helper = Helper::start(|_, side| side.play("日".repeat(10_000).as_bytes()));
    let report = helper.run(call()).await.expect("report");
    let step = &report.steps[0];
    assert_eq!((step.stdout.len(), step.stdout_truncated, step.stdout_bytes), (999, true, 30_000));
    assert!(!step.lossy_utf8 && step.stdout.chars().all(|c| c == '日'));
}

#[tokio::test]
async fn a_stale_catalogue_is_reloaded_and_the_call_sent_once_more() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let digests = seen.clone();
    let helper = Helper::start(move |run, side| {
        let mut digests = digests.lock().expect("digests");
        digests.push(run.digest);
        if digests.len() == 1 {
            side.send(&Event::Refused { code: RefusalCode::Stale, detail: String::new(), receipt: None });
        } else {
            side.play(b"ok");
        }
    });
    let runner = helper.runner().await;
    let catalog = format!(r#"{{"format": 1,  "actions": [{ACTION}]}}"#);
    std::fs::write(helper.dir.join("catalog.json"), catalog).expect("catalogue");
    let report = runner.run(call(), Arc::default(), mpsc::channel(16).0).await.expect("report");
    assert_eq!(report.steps[0].stdout, "ok");
    let seen = seen.lock().expect("digests");
    assert!(seen.len() == 2 && seen[0] != seen[1]);
}

#[tokio::test]
async fn busy_and_refused_are_told_even_when_the_helper_closes_without_reading() {
    let helper = Helper::start(|_, side| side.send(&Event::Busy));
    assert_eq!(helper.run(call()).await, Err(Failure::Busy));
    let refused = |side: &Side| {
        let receipt = Some(Receipt { seq: 3, hash: [0; 32] });
        side.send(&Event::Refused { code: RefusalCode::Scope, detail: "no".into(), receipt });
    };
    let helper = Helper::start(move |_, side| refused(side));
    let failure = helper.run(call()).await.expect_err("refused");
    assert!(matches!(failure, Failure::Refused { code: RefusalCode::Scope, receipt: Some(_), .. }));
}

#[tokio::test]
async fn a_helper_that_goes_away_is_a_failure_with_its_reason() {
    let helper = Helper::start(|_, side| side.accepted());
    let failure = helper.run(call()).await.expect_err("lost");
    assert_eq!(failure, Failure::Helper(HelperError::Lost.to_string()));
    let helper = Helper::start(|_, side| side.started(7).0.write_all(b"x").expect("write"));
    assert!(
        matches!(helper.run(call()).await, Err(Failure::Helper(reason)) if reason.contains("out of order"))
    );
}

#[tokio::test]
async fn a_run_that_was_cancelled_without_us_says_that_the_helper_ended() {
    let helper = Helper::start(|_, side| {
        side.accepted();
        let (mut out, err) = side.started(0);
        out.write_all(b"line\n").expect("write");
        drop((out, err));
        let (killed_by, usage) = (Some("cancelled".into()), Usage::default());
        side.send(&Event::StepEnded { index: 0, outcome: Outcome::Signaled(9), killed_by, usage });
        side.ended();
    });
    let failure = helper.run(call()).await.expect_err("the helper is gone");
    let Failure::Helper(reason) = failure else { panic!("{failure:?}") };
    assert!(reason.contains("the helper ended") && reason.contains("partial output (5 bytes)"), "{reason}");
}

#[tokio::test]
async fn dropping_the_call_closes_the_connection_and_the_pipes() {
    let (told, tells) = std::sync::mpsc::channel();
    let helper = Helper::start(move |_, side| {
        side.accepted();
        let (mut out, _err) = side.started(0);
        told.send("started").expect("told");
        let gone = side.receive().is_none();
        let broken = out.write_all(&[0; 1 << 20]).is_err();
        told.send(if gone && broken { "cancelled" } else { "still there" }).expect("told");
    });
    let runner = helper.runner().await;
    let task = tokio::spawn(async move { runner.run(call(), Arc::default(), mpsc::channel(16).0).await });
    let tells = tokio::task::spawn_blocking(move || {
        assert_eq!(tells.recv_timeout(Duration::from_secs(5)), Ok("started"));
        tells
    });
    let tells = tells.await.expect("started");
    task.abort();
    let last = tokio::task::spawn_blocking(move || tells.recv_timeout(Duration::from_secs(5)));
    assert_eq!(last.await.expect("wait"), Ok("cancelled"));
}

#[tokio::test]
async fn a_pipe_that_outlives_its_step_holds_the_result_for_a_second_only() {
    let helper = Helper::start(|_, side| {
        side.accepted();
        let (mut out, err) = side.started(0);
        out.write_all(b"started\n").expect("write");
        side.step_ended(0, Outcome::Exited(0));
        side.ended();
        std::thread::sleep(Duration::from_secs(5));
        drop((out, err));
    });
    let start = Instant::now();
    let report = helper.run(call()).await.expect("report");
    assert!(start.elapsed() < Duration::from_secs(3) && report.success);
    assert_eq!(report.steps[0].stdout, "started\n");
}

#[tokio::test]
async fn progress_tells_what_happens() {
    let helper = Helper::start(|_, side| {
        side.send(&Event::AwaitingApproval { id: "7".into(), timeout_ms: 60_000 });
        side.play(b"x");
    });
    let (progress, mut told) = mpsc::channel(16);
    helper.runner().await.run(call(), Arc::default(), progress).await.expect("report");
    let mut all = Vec::new();
    while let Some(one) = told.recv().await {
        all.push(one);
    }
    let held = Duration::from_secs(60);
    assert!(
        matches!(&all[0], Progress::AwaitingApproval { id, timeout, .. } if id == "7" && *timeout == held)
    );
    assert!(matches!(&all[1], Progress::Accepted { deadline, .. } if *deadline == Duration::from_secs(30)));
    assert_eq!(all[2], Progress::Step { index: 0, name: "main".into() });
}

#[tokio::test]
async fn what_the_daemon_refuses_itself_is_noted_without_its_values() {
    let helper = Helper::start(|_, _| panic!("nothing may be sent"));
    let runner = helper.runner().await;
    let with = |filters: Filters, text: &str| {
        let text = packet::Argument { name: "text".into(), value: text.into() };
        Call { args: vec![text], filters, ..call() }
    };
    let head = Filters { head: Some(1), ..Filters::default() };
    for call in
        [with(head, "x"), with(Filters { matching: Some("(s3cr3t".into()), ..Filters::default() }, "x")]
    {
        let failure = runner.run(call, Arc::default(), mpsc::channel(16).0).await.expect_err("refused");
        assert!(matches!(failure, Failure::Invalid(_)), "{failure:?}");
    }
    let failure = runner
        .run(with(Filters::default(), "-x"), Arc::default(), mpsc::channel(16).0)
        .await
        .expect_err("refused");
    assert!(matches!(failure, Failure::Refused { code: RefusalCode::Argument, .. }), "{failure:?}");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let notes = helper.notes.lock().expect("notes");
    assert_eq!(notes.len(), 2);
    assert!(notes.iter().all(|note| note.rule == "filter" && !note.detail.contains("s3cr3t")));
}

#[tokio::test]
async fn a_flood_of_strangers_takes_no_room_from_callers_and_its_number_is_recorded() {
    let helper = Helper::start(|_, _| panic!("nothing may be sent"));
    let runner = helper.runner().await;
    let note = |rule: &str| Note {
        caller: Caller::default(),
        action: String::new(),
        rule: rule.into(),
        detail: String::new(),
    };
    // More at once than a queue takes: their number is recorded first, then what the budget leaves.
    (0..100).for_each(|_| runner.note(note("token")));
    runner.note(note("scope"));
    let of = |rule: &str| {
        let notes = helper.notes.lock().expect("notes");
        notes.iter().filter(|note| note.rule == rule).cloned().collect::<Vec<_>>()
    };
    let start = Instant::now();
    while (of("token").len() < 59 || of("scope").is_empty()) && start.elapsed() < Duration::from_secs(10) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!((of("token").len(), of("scope").len()), (59, 1));
    assert_eq!(of("dropped")[0].detail, "36 refusals like these were not recorded");
}

#[tokio::test]
async fn an_absent_helper_is_named_with_the_way_out() {
    let paths = Paths::for_state(Path::new("/nonexistent"));
    let policy = Policy::new(paths.clone(), Peer::SameUser);
    assert!(policy.refresh().await.is_err());
    let runner = Runner::new(&paths, Peer::SameUser, policy);
    let failure = runner.run(call(), Arc::default(), mpsc::channel(16).0).await.expect_err("no helper");
    let Failure::Refused { code: RefusalCode::NoCatalog, detail, .. } = failure else {
        panic!("{failure:?}")
    };
    assert!(detail.contains("/nonexistent/helper.sock") && detail.contains("doctor"), "{detail}");
}
