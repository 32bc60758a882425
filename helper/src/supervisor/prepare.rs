#![forbid(unsafe_code)]
//! Everything of a step that can fail cleanly, before anything is forked: program, paths, promises, rules.

use super::Refusal;
use crate::host::{Host, NO_NAMESPACES, NO_TEMPORARY_FOR_ROOT};
use crate::in_force::{Identity, InForce};
use crate::sandbox::landlock::{self, Place};
use crate::sandbox::program::{self, Executor, Program, ProgramError};
use crate::sandbox::{network, places, temporary};
use gloveport_contract::catalog::{Action, Approval, ArgvItem, Builtin, Network, Promise, Sandbox};
use gloveport_contract::packet::{Enforcement, RefusalCode};
use gloveport_contract::plan::{Plan, PlannedStep, StepKind};
use gloveport_contract::promises::{self, Ground};
use seccompiler::BpfProgram;
use std::os::fd::OwnedFd;
use std::path::Path;

/// A step that is ready to be forked.
pub struct Prepared<'a> {
    /// The executable.
    pub program: Program,
    /// The Landlock ruleset.
    pub ruleset: Option<OwnedFd>,
    /// The system call filter.
    pub filter: &'a BpfProgram,
    /// Capabilities left in the bounding set.
    pub bounding: Vec<u8>,
    /// Whether it gets an empty network namespace.
    pub network_namespace: bool,
    /// Whether it gets a PID namespace.
    pub isolate_pids: bool,
    /// Whether the filter keeps its signals in, because Landlock does not.
    pub own_signals_only: bool,
}

/// What a sandbox declares, found on the host.
struct Met {
    places: Vec<Place>,
    absent: Vec<String>,
    lacking: Vec<Promise>,
}

/// A program and its sandbox, as an action declares them.
struct Unit<'a> {
    path: &'a Path,
    fallbacks: &'a [String],
    interpreter_allowed: bool,
    sandbox: &'a Sandbox,
}

/// The helper's part of the world that preparing needs.
#[derive(Clone, Copy)]
pub struct Preparing<'a> {
    /// The host.
    pub host: &'a Host,
    /// The catalogue.
    pub in_force: &'a InForce,
    /// No trust boundary.
    pub same_user: bool,
}

impl<'a> Preparing<'a> {
    /// Prepares one step, and adds what confines it to the run's enforcement.
    ///
    /// # Errors
    /// What this host lacks.
    pub fn step(
        &self,
        action: &Action,
        step: &PlannedStep<'_>,
        identity: &Identity,
        temporary: Option<&OwnedFd>,
        enforcement: &mut Enforcement,
    ) -> Result<Prepared<'a>, Refusal> {
        let sandbox = step.sandbox.as_ref();
        let is_command = action.builtin == Some(Builtin::Command);
        let unit = match step.kind {
            StepKind::Program { path, fallbacks } => {
                let interpreter_allowed = if is_command {
                    let rules = action.builtin_config.iter().flat_map(|config| config.rules());
                    let name = step.argv.first().map(Vec::as_slice);
                    rules
                        .filter(|rule| rule.exec == path && Some(rule.name.as_bytes()) == name)
                        .any(|rule| rule.allow_interpreter)
                } else {
                    action.allow_interpreter
                };
                Unit { path: Path::new(path), fallbacks, interpreter_allowed, sandbox }
            }
            StepKind::Script { interpreter, .. } => {
                Unit { path: Path::new(interpreter), fallbacks: &[], interpreter_allowed: true, sandbox }
            }
            StepKind::Handler(_) => {
                Unit { path: &self.host.handler, fallbacks: &[], interpreter_allowed: false, sandbox }
            }
        };
        let (program, mut met) = self.find(&unit, identity).map_err(|error| match error {
            Lack::Program(ProgramError::Missing(path)) if is_command => {
                Refusal { code: RefusalCode::NotFound, detail: ProgramError::Missing(path).to_string() }
            }
            Lack::Program(error @ ProgramError::NotExecutable(..)) if is_command => {
                Refusal { code: RefusalCode::NotExecutable, detail: error.to_string() }
            }
            lack => Refusal { code: RefusalCode::Unsupported, detail: lack.to_string() },
        })?;
        describe(enforcement, sandbox, self.host.landlock_abi, &met);
        if let Some(directory) = temporary.filter(|_| sandbox.private_tmp.is_some()) {
            met.places.push(Place::temporary(directory).map_err(|error| Refusal {
                code: RefusalCode::Internal,
                detail: format!("the run's temporary directory: {error}"),
            })?);
        }
        self.confine(action, sandbox, identity, program, met.places)
    }

    fn confine(
        &self,
        action: &Action,
        sandbox: &Sandbox,
        identity: &Identity,
        program: Program,
        mut all: Vec<Place>,
    ) -> Result<Prepared<'a>, Refusal> {
        let internal = |detail: String| Refusal { code: RefusalCode::Internal, detail };
        all.extend(places::base(sandbox, identity.uid, &self.host.libraries));
        all.extend(places::executable(&program).map_err(internal)?);
        let ruleset = match self.host.landlock_abi {
            0 => None,
            abi => Some(
                landlock::build(abi, &all, &sandbox.network)
                    .map_err(|error| internal(format!("the Landlock ruleset: {error}")))?
                    .ok_or_else(|| internal("the Landlock ruleset is none".into()))?,
            ),
        };
        let filter = self
            .in_force
            .filter(action, sandbox)
            .ok_or_else(|| internal("the action has no filter for this sandbox".into()))?;
        Ok(Prepared {
            program,
            ruleset,
            filter,
            bounding: bounding(sandbox)?,
            isolate_pids: sandbox.isolate_pids,
            network_namespace: sandbox.network == Network::Namespace,
            own_signals_only: promises::own_signals_only(sandbox, self.host.landlock_abi),
        })
    }

    /// The temporary directory of a run, where one of its steps declares it: all of them share it.
    ///
    /// # Errors
    /// What this host lacks.
    pub fn temporary(&self, plan: &Plan<'_>, identity: &Identity) -> Result<Option<OwnedFd>, Refusal> {
        let Some(size) = plan.steps.iter().find_map(|step| step.sandbox.private_tmp) else {
            return Ok(None);
        };
        let made = self
            .can_have_temporary(identity)
            .and_then(|()| temporary::make(size.0, identity.uid, identity.gid));
        made.map(Some).map_err(|reason| Refusal {
            code: RefusalCode::Unsupported,
            detail: format!("the run's temporary directory: {reason}"),
        })
    }

    fn can_have_temporary(&self, identity: &Identity) -> Result<(), String> {
        if identity.uid == 0 {
            return Err(NO_TEMPORARY_FOR_ROOT.to_owned());
        }
        self.host.no_temporary.clone().map_or(Ok(()), Err)
    }

    /// Whether a person could be asked, where the action wants that.
    ///
    /// # Errors
    /// Why not.
    pub fn can_ask(&self, action: &Action) -> Result<(), String> {
        if self.same_user && action.approval == Approval::Required {
            return Err("approvals are root's: there are none under --same-user".to_owned());
        }
        Ok(())
    }

    /// Whether this host can run an action at all: `Ok`, or what is missing. The programs of
    /// `builtin: command` are looked at when they are called: one that is missing is an answer then.
    ///
    /// # Errors
    /// The first thing that is missing.
    pub fn supports(&self, action: &Action) -> Result<(), String> {
        self.can_ask(action)?;
        let identity = self.in_force.identity(action)?;
        let own = action.sandboxes();
        let Some(sandbox) = own.first() else {
            return Ok(());
        };
        let unit = |path, fallbacks, interpreter_allowed, sandbox| Unit {
            path,
            fallbacks,
            interpreter_allowed,
            sandbox,
        };
        let mut units: Vec<Unit<'_>> = Vec::new();
        if let Some(exec) = &action.exec {
            units.push(unit(first(exec), &action.exec_fallbacks, action.allow_interpreter, sandbox));
        }
        for step in action.steps.iter().flatten() {
            let sandbox = step.sandbox.as_ref().unwrap_or(sandbox);
            units.push(unit(first(&step.exec), &step.exec_fallbacks, action.allow_interpreter, sandbox));
        }
        if let Some(script) = &action.script {
            units.push(unit(Path::new(&script.interpreter), &[], true, sandbox));
        }
        match action.builtin {
            Some(Builtin::Command) => {
                self.meet(sandbox, &identity).map(drop).map_err(|lack| lack.to_string())?
            }
            Some(_) => units.push(unit(&self.host.handler, &[], false, sandbox)),
            None => {}
        }
        units
            .iter()
            .try_for_each(|unit| self.find(unit, &identity).map(drop).map_err(|lack| lack.to_string()))
    }

    fn find(&self, unit: &Unit<'_>, identity: &Identity) -> Result<(Program, Met), Lack> {
        let mut met = self.meet(unit.sandbox, identity)?;
        let groups = identity.all_groups();
        let executor = Executor { uid: identity.uid, groups: &groups };
        let program = program::open_first(unit.path, unit.fallbacks, executor, unit.interpreter_allowed)
            .map_err(Lack::Program)?;
        for child in &unit.sandbox.exec {
            let child = program::open(Path::new(child), executor, true).map_err(Lack::Program)?;
            met.places.extend(places::executable(&child).map_err(Lack::Other)?);
        }
        Ok((program, met))
    }

    /// Promises and declared paths of one sandbox.
    fn meet(&self, sandbox: &Sandbox, identity: &Identity) -> Result<Met, Lack> {
        if self.same_user && sandbox.network.has_unix() {
            let why = "`network: [unix]` under --same-user would reach the helper itself";
            return Err(Lack::Other(why.into()));
        }
        let wants_namespaces = sandbox.network == Network::Namespace || sandbox.isolate_pids;
        if wants_namespaces && !self.host.namespaces {
            return Err(Lack::Other(NO_NAMESPACES.to_owned()));
        }
        if sandbox.private_tmp.is_some() {
            self.can_have_temporary(identity).map_err(Lack::Other)?;
        }
        let ground = Ground { abi: self.host.landlock_abi, guard_page: self.host.page_is_lowest };
        let verdict = promises::judge(sandbox, ground);
        if let Some((promise, remedy)) = verdict.broken.first() {
            return Err(Lack::Other(format!(
                "this kernel does not keep the promise `{0}`, which takes {remedy}; an action that may go \
                 without says `may_lack: [{0}]`",
                promise.as_str()
            )));
        }
        let declared = places::declared(sandbox, identity.uid, &self.host.protected).map_err(Lack::Other)?;
        Ok(Met { places: declared.places, absent: declared.absent, lacking: verdict.lacking })
    }
}

/// What a host lacks for a program.
enum Lack {
    Program(ProgramError),
    Other(String),
}

impl std::fmt::Display for Lack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program(error) => error.fmt(f),
            Self::Other(text) => f.write_str(text),
        }
    }
}

fn first(argv: &[ArgvItem]) -> &Path {
    match argv.first() {
        Some(ArgvItem::One(path)) => Path::new(path),
        _ => Path::new(""),
    }
}

/// Numbers of the capabilities that stay in the bounding set, so that a program with that file capability
/// starts; it does not gain it.
fn bounding(sandbox: &Sandbox) -> Result<Vec<u8>, Refusal> {
    let number = |name: &String| match name.as_str() {
        "net_raw" => Ok(caps::Capability::CAP_NET_RAW.index()),
        other => Err(Refusal {
            code: RefusalCode::Unsupported,
            detail: format!("bounding: `{other}` is not known; `net_raw` is"),
        }),
    };
    sandbox.bounding.iter().map(number).collect()
}

/// Adds what confines one step to what confines the run: the weakest of its steps.
fn describe(enforcement: &mut Enforcement, sandbox: &Sandbox, abi: u32, met: &Met) {
    let add = |list: &mut Vec<String>, text: String| {
        if !list.contains(&text) {
            list.push(text);
        }
    };
    let mut names: Vec<String> = enforcement.seccomp.split(", ").map(str::to_owned).collect();
    if sandbox.network == Network::Namespace {
        add(&mut names, "namespace".to_owned());
    }
    for class in sandbox.network.classes() {
        add(&mut names, network::name(class).to_owned());
    }
    for group in &sandbox.syscalls {
        add(&mut names, group.as_str().to_owned());
    }
    enforcement.seccomp = names.join(", ");
    let mut networks: Vec<String> = Vec::new();
    for text in [enforcement.network.clone(), network::describe(&sandbox.network, abi)] {
        if text != "none" {
            add(&mut networks, text);
        }
    }
    enforcement.network = if networks.is_empty() { "none".to_owned() } else { networks.join(", ") };
    enforcement.one_shot_exec &= sandbox.exec.is_empty() && !met.lacking.contains(&Promise::OneShotExec);
    met.absent.iter().for_each(|path| add(&mut enforcement.absent, path.clone()));
    met.lacking.iter().for_each(|promise| add(&mut enforcement.lacking, promise.as_str().to_owned()));
}
