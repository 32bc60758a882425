#![forbid(unsafe_code)]
//! One tool call: who, what, with which arguments; then the run, or a refusal that says what would be right.

use super::arguments::{self, Input};
use super::batch;
use super::envelope::Members;
use super::errors::RpcError;
use super::fit::ENCODED_OUTPUT;
use super::json::kind;
use super::result::{self, ToolResult};
use crate::http::auth::{Denied, Principal};
use crate::http::outputs::Place;
use crate::http::{AppState, Peer};
use crate::run::report::{Call, Failure, Progress};
use gloveport_contract::catalog::{Action, Directory, ResultShape};
use gloveport_contract::command;
use gloveport_contract::limits;
use gloveport_contract::packet::{Note, RefusalCode};
use gloveport_contract::plan::{self, Refusal};
use gloveport_contract::token::{Tokens, Via};
use serde_json::Value;
use std::borrow::Cow;
use tokio::sync::mpsc;

/// The parameters of `tools/call`.
#[derive(Debug)]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Members,
    /// The request's `_meta`.
    pub meta: Members,
    /// The token by which the client knows progress of this call.
    pub progress_token: Option<Value>,
}

impl ToolCall {
    /// Reads the parameters.
    ///
    /// # Errors
    /// What has another form than the protocol says.
    pub fn read(mut params: Members) -> Result<Self, RpcError> {
        let name = match params.remove("name") {
            Some(Value::String(name)) => name,
            Some(other) => {
                return Err(RpcError::params(format!("name: must be a text, not {}", kind(&other))));
            }
            None => return Err(RpcError::params("name: required")),
        };
        let arguments = read_arguments("arguments", params.remove("arguments"))?;
        let meta = match params.remove("_meta") {
            Some(Value::Object(meta)) => meta,
            _ => Members::new(),
        };
        let progress_token = match meta.get("progressToken") {
            None | Some(Value::Null) => None,
            Some(token @ Value::String(_)) => Some(token.clone()),
            Some(Value::Number(token)) if !token.is_f64() => Some(Value::Number(token.clone())),
            Some(other) => {
                let problem = format!("progressToken: must be a text or an integer, not {}", kind(other));
                return Err(RpcError::params(problem));
            }
        };
        Ok(Self { name, arguments, meta, progress_token })
    }
}

/// Arguments as an object; left out or null they are empty.
///
/// # Errors
/// Anything else.
pub fn read_arguments(name: &str, value: Option<Value>) -> Result<Members, RpcError> {
    match value {
        None | Some(Value::Null) => Ok(Members::new()),
        Some(Value::Object(arguments)) => Ok(arguments),
        Some(other) => Err(RpcError::params(format!("{name}: must be an object, not {}", kind(&other)))),
    }
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
    /// The client's id of the request.
    pub request: String,
}

impl Invocation {
    /// Calls a tool, and yields the result with its place among the large outputs.
    ///
    /// # Errors
    /// An unknown tool. Everything else that can go wrong is a result.
    pub async fn call(
        &self,
        name: &str,
        arguments: Members,
        progress: &mpsc::Sender<Progress>,
    ) -> Result<(ToolResult, Place), RpcError> {
        let Some(place) = self.state.outputs.take(self.most_output(name, &arguments)).await else {
            let busy = "Busy: as many large outputs are on their way as fit into memory. Try again when one of \
                        them has been read.";
            self.note(&self.principal, name, "busy", "no memory for another large output");
            return Ok((ToolResult::failure(busy), Place::default()));
        };
        let result = self.call_in_place(name, arguments, progress).await?;
        Ok((result, place))
    }

    /// The most output that a tool's actions may have; of a batch, what fits into its reply.
    fn most_output(&self, name: &str, arguments: &Members) -> u64 {
        let snapshot = self.state.policy.snapshot();
        let of = |name: &str| {
            let action = snapshot.catalog.as_ref().ok().and_then(|catalog| catalog.action(name));
            action.map_or(0, Action::max_output)
        };
        if !self.is_batch(name) {
            return of(name);
        }
        batch::tools(arguments).map(of).sum::<u64>().min(limits::OUTPUT_MAX)
    }

    async fn call_in_place(
        &self,
        name: &str,
        arguments: Members,
        progress: &mpsc::Sender<Progress>,
    ) -> Result<ToolResult, RpcError> {
        if self.is_batch(name) {
            return Ok(match self.principal.permits(batch::NAME, batch::RISK) {
                Ok(()) => batch::run(self, arguments, progress).await,
                Err(rule) => {
                    self.note(&self.principal, name, "scope", &rule.to_string());
                    ToolResult::failure(format!("{name}: {rule}"))
                }
            });
        }
        self.call_action(name, arguments, progress, ENCODED_OUTPUT).await
    }

    /// Whether a name means the daemon's own tool: an action of that name goes first.
    fn is_batch(&self, name: &str) -> bool {
        name == batch::NAME
            && !matches!(self.principal, Principal::Keyless { .. })
            && self
                .state
                .policy
                .snapshot()
                .catalog
                .as_ref()
                .is_ok_and(|catalog| catalog.action(name).is_none())
    }

    /// Calls an action. `budget` bounds the output in the result.
    ///
    /// # Errors
    /// No such action.
    pub async fn call_action(
        &self,
        name: &str,
        mut arguments: Members,
        progress: &mpsc::Sender<Progress>,
        budget: usize,
    ) -> Result<ToolResult, RpcError> {
        let snapshot = self.state.policy.snapshot();
        let catalog = match &snapshot.catalog {
            Ok(catalog) => catalog,
            Err(reason) => {
                self.note(&self.principal, name, "catalog", "no catalogue is in force");
                return Ok(ToolResult::failure(format!("No catalogue is in force: {reason}")));
            }
        };
        let keyless = matches!(self.principal, Principal::Keyless { .. });
        let known = catalog.action(name).filter(|action| !keyless || arguments::takes_key(action));
        let Some(action) = known else {
            self.note(&self.principal, name, "tool", "unknown tool");
            let shown: String = name.chars().take(64).collect();
            return Err(RpcError::params(format!("Unknown tool: {shown}")));
        };
        // Every caller may send the key; only who has shown nothing else is judged by it.
        let key = arguments::take_key(action, &mut arguments);
        let principal = match self.by_key(&snapshot.tokens, key.as_deref()) {
            Ok(principal) => principal,
            Err(denied) => {
                self.note(&self.principal, name, "key", denied.message());
                return Ok(result::refusal(action.result, key_problem(denied), None));
            }
        };
        if let Err(rule) = principal.permits(name, action.risk) {
            self.note(&principal, name, "scope", &rule.to_string());
            return Ok(result::refusal(action.result, format!("{name}: {rule}"), None));
        }
        let input = match arguments::read(action, arguments) {
            Ok(input) => input,
            Err(problem) => {
                let argument = problem.split(':').next().unwrap_or_default();
                self.note(&principal, name, "argument", &format!("{argument}: has another form"));
                return Ok(misuse(action, &problem));
            }
        };
        if let Err(refusal) = plan::plan(action, &input.args, input.content().as_ref()) {
            return Ok(self.refused_by_plan(&principal, action, &input, &refusal));
        }
        let call = Call {
            action: action.name.clone(),
            args: input.args.clone(),
            content: input.content.clone(),
            filters: input.filters.clone(),
            token: principal.token(),
            caller: principal.caller(&self.peer, &self.client, &self.request),
        };
        Ok(match self.state.runner.run(call, progress.clone()).await {
            Ok(report) => result::finished(action, report, program(&input).as_deref(), budget),
            Err(failure) => failed(action, &input, failure),
        })
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
    fn note(&self, principal: &Principal, action: &str, rule: &str, detail: &str) {
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

    fn read(params: Value) -> Result<ToolCall, RpcError> {
        ToolCall::read(params.as_object().unwrap().clone())
    }

    #[test]
    fn arguments_are_an_object_or_left_out() {
        for arguments in [json!({"name": "x"}), json!({"name": "x", "arguments": null})] {
            assert!(read(arguments).unwrap().arguments.is_empty());
        }
        for arguments in [json!([]), json!("{}"), json!(1)] {
            assert_eq!(read(json!({"name": "x", "arguments": arguments})).unwrap_err().code, -32602);
        }
        assert_eq!(read(json!({})).unwrap_err().code, -32602);
        assert_eq!(read(json!({"name": 5})).unwrap_err().code, -32602);
    }

    #[test]
    fn a_progress_token_keeps_its_type() {
        for token in [json!(0), json!(7), json!("a"), json!("")] {
            let call = read(json!({"name": "x", "_meta": {"progressToken": token}})).unwrap();
            assert_eq!(call.progress_token, Some(token));
        }
        assert_eq!(read(json!({"name": "x", "_meta": {}})).unwrap().progress_token, None);
        for token in [json!(1.5), json!(true), json!({})] {
            assert!(read(json!({"name": "x", "_meta": {"progressToken": token}})).is_err());
        }
    }

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
