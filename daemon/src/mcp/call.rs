#![forbid(unsafe_code)]
//! One tool call: who, what, with which arguments; then the run, or a refusal that says what would be right.

use super::arguments::{self, Input};
use super::envelope::Members;
use super::errors::RpcError;
use super::fit::ENCODED_OUTPUT;
use super::ledger::Owner;
use super::own::Own;
use super::result::{self, ToolResult};
use super::{batch, elicit, fetch};
use crate::http::auth::{Denied, Principal};
use crate::http::outputs::Place;
use crate::http::{AppState, Peer};
use crate::policy::Snapshot;
use crate::run::live::Live;
use crate::run::report::{Call, Failure, Progress, Report};
use gloveport_contract::catalog::{Action, Approval, Directory, ResultShape};
use gloveport_contract::command;
use gloveport_contract::limits;
use gloveport_contract::packet::{Note, RefusalCode};
use gloveport_contract::plan::{self, Refusal};
use gloveport_contract::token::{Tokens, Via};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// How the client's user can be told that a person at the host is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// Not at all, or by progress alone.
    Unreachable,
    /// By a result that asks before anything is sent to the helper (2026-07-28), and whether the user goes on;
    /// `None` where the user was not asked yet.
    AskedFirst(Option<bool>),
    /// By a request on the stream of the call, while it waits (the `initialize` revisions).
    Told,
}

/// A request that calls tools, and in whose name.
pub struct Invocation {
    /// The server.
    pub state: AppState,
    /// Who calls.
    pub principal: Principal,
    /// From where.
    pub peer: Peer,
    /// The client's name and version.
    pub client: String,
    /// The client's user.
    pub user: User,
    /// What a person at the host is asked about the newest call that needs an approval.
    pub asked: Arc<Mutex<Option<String>>>,
    /// The client's id of the request.
    pub request: String,
}

/// A call that may be sent to the helper.
struct Ready<'s> {
    action: &'s Action,
    principal: Principal,
    input: Input,
    /// What a person at the host will be asked.
    question: Option<String>,
}

/// Why a call is not sent.
enum Stop {
    /// There is no such tool.
    Error(RpcError),
    /// A result says why.
    Answer(ToolResult),
}

impl Invocation {
    /// Calls a tool, and yields the members of its result with its place among the large outputs.
    ///
    /// # Errors
    /// An unknown tool. Everything else that can go wrong is a result.
    pub async fn call(
        &self,
        name: &str,
        arguments: Members,
        progress: &mpsc::Sender<Progress>,
    ) -> Result<(Members, Place), RpcError> {
        let snapshot = self.state.policy.snapshot();
        let own = self.own_tool(&snapshot, name);
        let Some(place) = self.state.outputs.take(most_output(&snapshot, own, name, &arguments)).await else {
            let busy = "Busy: as many large outputs are on their way as fit into memory. Try again when one of \
                        them has been read.";
            self.note(&self.principal, name, "busy", "no memory for another large output");
            return Ok((ToolResult::failure(busy).into_members(), Place::default()));
        };
        let result = match own {
            Some(Own::Batch) => match self.principal.permits(batch::NAME, batch::RISK) {
                Ok(()) => batch::run(self, arguments, progress).await,
                Err(rule) => {
                    self.note(&self.principal, name, "scope", &rule.to_string());
                    ToolResult::failure(format!("{name}: {rule}"))
                }
            },
            Some(Own::RunResult) => fetch::result(self, arguments).await,
            Some(Own::EndRun) => fetch::end(self, arguments),
            None => match self.check(&snapshot, name, arguments) {
                Ok(ready) => match (&ready.question, self.user) {
                    (Some(question), User::AskedFirst(None)) => {
                        return Ok((elicit::input_required(question), place));
                    }
                    (Some(_), User::AskedFirst(Some(false))) => self.withdrawn(&ready),
                    _ => self.perform(ready, progress, ENCODED_OUTPUT).await,
                },
                Err(Stop::Answer(result)) => result,
                Err(Stop::Error(error)) => return Err(error),
            },
        };
        Ok((result.into_members(), place))
    }

    /// The daemon's own tool of that name. What a caller may not see of them is no tool to that caller.
    fn own_tool(&self, snapshot: &Snapshot, name: &str) -> Option<Own> {
        let catalog = snapshot.catalog.as_ref().ok()?;
        let own = Own::of(name, catalog)?;
        let is_keyless = matches!(self.principal, Principal::Keyless { .. });
        (!is_keyless && (own == Own::Batch || own.is_permitted(&self.principal, catalog))).then_some(own)
    }

    /// Calls an action. `budget` bounds the output in the result.
    ///
    /// # Errors
    /// No such action.
    pub async fn call_action(
        &self,
        name: &str,
        arguments: Members,
        progress: &mpsc::Sender<Progress>,
        budget: usize,
    ) -> Result<ToolResult, RpcError> {
        let snapshot = self.state.policy.snapshot();
        match self.check(&snapshot, name, arguments) {
            Ok(ready) => Ok(self.perform(ready, progress, budget).await),
            Err(Stop::Answer(result)) => Ok(result),
            Err(Stop::Error(error)) => Err(error),
        }
    }

    /// Judges a call before the helper does.
    fn check<'s>(
        &self,
        snapshot: &'s Snapshot,
        name: &str,
        mut arguments: Members,
    ) -> Result<Ready<'s>, Stop> {
        let catalog = match &snapshot.catalog {
            Ok(catalog) => catalog,
            Err(reason) => {
                self.note(&self.principal, name, "catalog", "no catalogue is in force");
                return Err(Stop::Answer(ToolResult::failure(format!("No catalogue is in force: {reason}"))));
            }
        };
        let keyless = matches!(self.principal, Principal::Keyless { .. });
        let known = catalog.action(name).filter(|action| !keyless || arguments::takes_key(action));
        let Some(action) = known else {
            self.note(&self.principal, name, "tool", "unknown tool");
            let shown: String = name.chars().take(64).collect();
            return Err(Stop::Error(RpcError::params(format!("Unknown tool: {shown}"))));
        };
        // Every caller may send the key; only who has shown nothing else is judged by it.
        let key = arguments::take_key(action, &mut arguments);
        let principal = match self.by_key(&snapshot.tokens, key.as_deref()) {
            Ok(principal) => principal,
            Err(denied) => {
                self.note(&self.principal, name, "key", denied.message());
                return Err(Stop::Answer(result::refusal(action.result, key_problem(denied), None)));
            }
        };
        if let Err(rule) = principal.permits(name, action.risk) {
            self.note(&principal, name, "scope", &rule.to_string());
            return Err(Stop::Answer(result::refusal(action.result, format!("{name}: {rule}"), None)));
        }
        let input = match arguments::read(action, arguments) {
            Ok(input) => input,
            Err(problem) => {
                let argument = problem.split(':').next().unwrap_or_default();
                self.note(&principal, name, "argument", &format!("{argument}: has another form"));
                return Err(Stop::Answer(misuse(action, &problem)));
            }
        };
        let question = match plan::plan(action, &input.args, input.content().as_ref()) {
            Ok(plan) => (action.approval == Approval::Required).then(|| elicit::question(action, &plan)),
            Err(refusal) => {
                return Err(Stop::Answer(self.refused_by_plan(&principal, action, &input, &refusal)));
            }
        };
        Ok(Ready { action, principal: principal.into_owned(), input, question })
    }

    /// Has the helper run it, and waits for the end.
    async fn perform(
        &self,
        ready: Ready<'_>,
        progress: &mpsc::Sender<Progress>,
        budget: usize,
    ) -> ToolResult {
        let Ready { action, principal, input, question } = ready;
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = question;
        let call = Call {
            action: action.name.clone(),
            args: input.args.clone(),
            content: input.content.clone(),
            filters: input.filters.clone(),
            token: principal.token(),
            caller: principal.caller(&self.peer, &self.client, &self.request),
        };
        let live = Arc::new(Live::default());
        let owner = self.owner(&principal);
        let going = self.state.ledger.begin(owner, &action.name, action.risk, live.clone());
        let (runner, progress) = (self.state.runner.clone(), progress.clone());
        let Some(time) = action.keep_result() else {
            let outcome = runner.run(call, live, progress).await;
            drop(going);
            return told(action, &input, outcome, budget);
        };
        let action = action.clone();
        let shape = action.result;
        // A task of its own: it goes on when the client has gone, and its result waits for who comes back.
        let task = tokio::spawn(async move {
            let outcome = runner.run(call, live.clone(), progress).await;
            let result = told(&action, &input, outcome, budget);
            // What the helper never had an id for did not run.
            if live.id().is_some() {
                going.keep(result.clone(), time);
            }
            result
        });
        let stopping = "the run goes on without the daemon, which is stopping: its result is lost";
        task.await.unwrap_or_else(|_| result::refusal(shape, stopping, None))
    }

    /// Whom a run belongs to.
    pub fn owner(&self, principal: &Principal) -> Owner {
        let name = match (principal, &self.peer) {
            (Principal::Token { id, .. }, _) => {
                let tokens = &self.state.policy.snapshot().tokens.tokens;
                tokens.iter().find(|token| token.id == *id).map(|token| token.name.clone())
            }
            (_, Peer::Local { user, .. }) => Some(user.clone()),
            _ => None,
        };
        Owner { key: principal.key(), name: name.unwrap_or_default() }
    }

    /// A call that the client's user did not want to put to a person at the host.
    fn withdrawn(&self, ready: &Ready<'_>) -> ToolResult {
        let name = &ready.action.name;
        self.note(&ready.principal, name, "approval", "withdrawn at the client, before anybody was asked");
        let said =
            format!("{name}: withdrawn at the client; nobody was asked for an approval, and nothing was run");
        result::refusal(ready.action.result, said, None)
    }

    /// The caller, where nothing but the key in the arguments tells.
    fn by_key(&self, tokens: &Tokens, key: Option<&str>) -> Result<Cow<'_, Principal>, Denied> {
        match self.principal {
            Principal::Keyless { .. } => {
                let key = key.ok_or(Denied::Missing)?;
                Principal::of_token(tokens, key, Via::Argument).map(Cow::Owned)
            }
            _ => Ok(Cow::Borrowed(&self.principal)),
        }
    }

    fn refused_by_plan(
        &self,
        principal: &Principal,
        action: &Action,
        input: &Input,
        refusal: &Refusal,
    ) -> ToolResult {
        match refusal {
            Refusal::Command(blocked) => {
                self.note(
                    principal,
                    &action.name,
                    "command",
                    &format!("blocked by the rule {}", blocked.rule),
                );
                result::refusal(action.result, blocked.to_string(), None)
            }
            Refusal::Argument { name, problem } => {
                self.note(principal, &action.name, "argument", &format!("{name}: does not fit"));
                // A directory that is a text but none that may be used is an answer, as in a shell.
                let is_directory =
                    matches!(&action.cwd, Some(Directory::Param { param, .. }) if param == name);
                if is_directory && input.text(name).is_some() && action.result != ResultShape::Full {
                    result::refusal(action.result, format!("{name}: {problem}"), None)
                } else {
                    misuse(action, &format!("{name}: {problem}"))
                }
            }
        }
    }

    /// Has a refusal recorded that the helper never saw. `detail` holds no value that a caller gave.
    pub fn note(&self, principal: &Principal, action: &str, rule: &str, detail: &str) {
        let note = Note {
            caller: principal.caller(&self.peer, &self.client, &self.request),
            action: action.chars().filter(|c| !c.is_control()).take(64).collect(),
            rule: rule.to_owned(),
            detail: detail.to_owned(),
        };
        match principal {
            Principal::Keyless { .. } => self.state.runner.note_stranger(note),
            _ => self.state.runner.note(note),
        }
    }
}

/// The most output that a call can have; of a batch, what fits into its reply.
fn most_output(snapshot: &Snapshot, own: Option<Own>, name: &str, arguments: &Members) -> u64 {
    let of = |name: &str| {
        let action = snapshot.catalog.as_ref().ok().and_then(|catalog| catalog.action(name));
        action.map_or(0, Action::max_output)
    };
    match own {
        None => of(name),
        Some(Own::Batch) => batch::tools(arguments).map(of).sum::<u64>().min(limits::OUTPUT_MAX),
        Some(Own::RunResult) => limits::OUTPUT_MAX,
        Some(Own::EndRun) => 0,
    }
}

fn misuse(action: &Action, problem: &str) -> ToolResult {
    result::misuse(action.result, problem, &arguments::usage(action))
}

fn key_problem(denied: Denied) -> &'static str {
    match denied {
        Denied::Expired => "Invalid API key: it has expired",
        Denied::Missing => "Invalid API key: api_key is missing",
        _ => "Invalid API key",
    }
}

/// What there is to tell of a run.
fn told(action: &Action, input: &Input, outcome: Result<Report, Failure>, budget: usize) -> ToolResult {
    match outcome {
        Ok(report) => result::finished(action, report, program(input).as_deref(), budget),
        Err(failure) => failed(action, input, failure),
    }
}

/// A run that did not come to be.
fn failed(action: &Action, input: &Input, failure: Failure) -> ToolResult {
    let (code, detail, receipt) = match failure {
        Failure::Refused { code, detail, receipt } => (code, detail, receipt),
        Failure::Busy => {
            let busy = "Busy: all places for runs are taken. Try again when one of them has ended.";
            return result::refusal(action.result, busy, None);
        }
        Failure::Helper(reason) => return result::refusal(action.result, reason, None),
        Failure::Invalid(problem) => return misuse(action, &problem),
    };
    let mut result = match (code, program(input)) {
        (RefusalCode::NotFound, Some(name)) => result::not_found(action.result, &name),
        (RefusalCode::NotExecutable, Some(name)) => result::not_executable(action.result, &name),
        (RefusalCode::Argument, _) => misuse(action, &detail),
        _ => result::refusal(action.result, detail, None),
    };
    if let Some(receipt) = receipt {
        result.meta.insert("gloveport/audit".to_owned(), result::audit(&receipt));
    }
    result
}

/// The name of the program in a free-form command.
fn program(input: &Input) -> Option<String> {
    command::split(input.text("command")?).ok()?.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::fixtures::action;
    use gloveport_contract::packet::{Argument, Receipt};
    use serde_json::json;

    #[test]
    fn a_missing_program_is_named_as_a_shell_would() {
        let action = action(json!({"result": "command"}));
        let command = Argument { name: "command".to_owned(), value: "nice 'x'".into() };
        let input = Input { args: vec![command], ..Input::default() };
        let refused = |code| Failure::Refused {
            code,
            detail: "d".to_owned(),
            receipt: Some(Receipt { seq: 1, hash: [0; 32] }),
        };
        let result = failed(&action, &input, refused(RefusalCode::NotFound));
        assert_eq!(
            result.structured,
            Some(json!({"success": false, "error": "Command not found: nice", "exit_code": 127}))
        );
        assert!(!result.is_error && result.meta.contains_key("gloveport/audit"));
        let result = failed(&action, &input, refused(RefusalCode::NotExecutable));
        assert_eq!(result.structured.unwrap()["exit_code"], 126);
        let result = failed(&action, &Input::default(), refused(RefusalCode::Scope));
        assert_eq!(result.structured, Some(json!({"success": false, "error": "d"})));
    }
}
