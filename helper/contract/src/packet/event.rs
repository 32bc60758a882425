#![forbid(unsafe_code)]
//! What the helper answers.

use bincode::{Decode, Encode};

/// One packet from the helper.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Event {
    /// The answer to `Status`.
    StatusReply {
        /// [`super::VERSION`] of the helper.
        version: u32,
        /// SHA-256 of the catalogue in force.
        digest: Option<[u8; 32]>,
        /// Why none is in force, or why the newest one is not.
        reason: Option<String>,
        /// The kernel layers and whether they are there.
        layers: Vec<Layer>,
        /// Actions that this host cannot run.
        unsupported: Vec<Unsupported>,
        /// Whether another page follows.
        more: bool,
        /// Runs in progress.
        runs: u32,
    },
    /// The run will start. Recorded before it does.
    Accepted {
        /// Its id, for logs.
        run: String,
        /// How long it may take, milliseconds.
        deadline_ms: u64,
        /// What confines it.
        enforcement: Enforcement,
    },
    /// Held until a person decides.
    AwaitingApproval {
        /// The id for `gloveport approve`.
        id: String,
        /// How long it is held, milliseconds.
        timeout_ms: u64,
    },
    /// A step starts. Its descriptors come with this packet: read end of stdout, read end of stderr and,
    /// where content was declared, the write end of stdin.
    StepStarted {
        /// Its index.
        index: u32,
    },
    /// A step has ended, and its whole tree with it.
    StepEnded {
        /// Its index.
        index: u32,
        /// How.
        outcome: Outcome,
        /// What ended it beside itself: `timeout`, `cancelled`, `memory`, `leftovers`.
        killed_by: Option<String>,
        /// What it used.
        usage: Usage,
    },
    /// The run is over and recorded.
    Ended {
        /// The record.
        receipt: Receipt,
    },
    /// It does not run; or, after its steps and with [`RefusalCode::Audit`], it ran and its end is not recorded.
    /// Recorded where it could be.
    Refused {
        /// The kind of reason.
        code: RefusalCode,
        /// The reason, for the client.
        detail: String,
        /// The record, where one was made.
        receipt: Option<Receipt>,
    },
    /// All slots are taken, in total or for this action.
    Busy,
}

/// A layer of the kernel that runs rely on.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Layer {
    /// `landlock`, `seccomp`, `one_shot_exec`, `cgroup`, …
    pub name: String,
    /// Whether it is there.
    pub present: bool,
    /// Its version, or what is missing and the way out.
    pub detail: String,
}

/// An action that this host cannot run.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Unsupported {
    /// The action's name.
    pub action: String,
    /// What is missing.
    pub reason: String,
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Outcome {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// It never started: an earlier step failed.
    Skipped,
    /// It never started: preparing it failed.
    NotStarted {
        /// The step of the preparation, as `helper/AUDIT.md` lists them.
        stage: String,
        /// errno of the system call that failed, 0 where none did.
        errno: i32,
    },
}

/// rusage of a step and all its waited-for descendants (getrusage(2)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub struct Usage {
    /// Wall-clock time, microseconds.
    pub wall_us: u64,
    /// User time, microseconds.
    pub user_us: u64,
    /// System time, microseconds.
    pub system_us: u64,
    /// Peak resident set of the largest process, KiB.
    pub max_rss_kib: u64,
}

/// A record of the audit chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Receipt {
    /// Its number, from 1.
    pub seq: u64,
    /// SHA-256 of its line.
    pub hash: [u8; 32],
}

/// The kind of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum RefusalCode {
    /// No catalogue is in force.
    NoCatalog,
    /// The digest is not the one in force: reload and ask once more.
    Stale,
    /// No such action.
    UnknownAction,
    /// The token is unknown, expired or out of its scope.
    Scope,
    /// An argument does not fit.
    Argument,
    /// The command is blocked by its rules.
    Command,
    /// What the daemon rendered is not what the catalogue yields.
    Mismatch,
    /// The host lacks a program, an account, a path or a kernel layer.
    Unsupported,
    /// The program of a command does not exist.
    NotFound,
    /// The program of a command is not executable.
    NotExecutable,
    /// A person said no, or nobody said anything in time.
    Approval,
    /// The audit log cannot be written.
    Audit,
    /// The helper could not do its part.
    Internal,
}

/// What was in force when a run started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct Enforcement {
    /// The account.
    pub run_as: String,
    /// No new privileges.
    pub no_new_privs: bool,
    /// Landlock ABI in force; 0: none.
    pub landlock_abi: u32,
    /// Name of the seccomp filter: `default` or the classes added.
    pub seccomp: String,
    /// After the program has started, no second program.
    pub one_shot_exec: bool,
    /// Its own cgroup.
    pub cgroup: bool,
    /// What it can reach.
    pub network: String,
    /// Optional paths that this host does not have.
    pub absent: Vec<String>,
    /// Promises that it goes without.
    pub lacking: Vec<String>,
    /// Whether it runs as the helper's own user (`--same-user`): no trust boundary.
    pub same_user: bool,
}
