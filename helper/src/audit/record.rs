#![forbid(unsafe_code)]
//! What a record says. Its number, its hash and its time are the writer's.

use super::abbreviate::{abbreviate, shorten};
use gloveport_contract::catalog::{Risk, hex};
use gloveport_contract::packet::{self, Content, Outcome, RefusalCode, Usage};
use serde::Serialize;

/// Longest record, bytes of JSON: with the head of a line it fits one packet of a `SOCK_SEQPACKET` socket
/// with the kernel's default buffers.
pub const RECORD: usize = 192 * 1024;
/// Longest text of a peer that is kept, bytes. Names, addresses and reasons are far shorter.
const TEXT: usize = 1024;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A run was accepted; written before its program starts.
    Accepted,
    /// A request was refused.
    Refused,
    /// A call is held until a person decides.
    AwaitingApproval,
    /// A person has decided.
    Decided,
    /// A run is over.
    Ended,
    /// The daemon reports a refusal of its own.
    Noted,
    /// The daemon sent something that is no request.
    Malformed,
    /// The helper has started.
    Started,
    /// A catalogue or tokens came into force, or did not.
    Reloaded,
    /// The helper has ended.
    Stopped,
    /// The file before this one was full; the chain goes on in this one.
    Rotated,
    /// Records are missing before this one.
    Gap,
    /// The last line was incomplete when the helper started; here is what there was of it.
    Torn,
}

/// How the caller is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallerProof {
    /// By the token, which the helper checked itself.
    Token,
    /// By the daemon's word.
    DaemonSays,
}

impl CallerProof {
    /// The word that records have.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::DaemonSays => "daemon-says",
        }
    }
}

/// One record. Keys without a value are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Record {
    /// What happened.
    pub kind: Kind,
    /// The run's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Its risk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    /// The token's name, or the local user's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// How the caller is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller_proof: Option<CallerProof>,
    /// The token's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    /// The uid of a local-socket user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// `http`, `path`, `argument`, `local`, `stdio`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The peer's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The client's name and version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The client's request id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// SHA-256 of the catalogue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// The arguments as given, `name=value`; those of secret parameters without their value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The argv of each step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<Vec<String>>,
    /// What came by stdin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentRecord>,
    /// `allow` or `refuse`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Who has approved or denied it: root's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// The kind of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The reason, or what there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The account that programs run as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as: Option<String>,
    /// What confines them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<EnforcementRecord>,
    /// How each step ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRecord>,
    /// What ended the run beside itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub killed_by: Option<String>,
    /// From request to end, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Of an incomplete line: what there was of it, as far as it is kept, and its SHA-256.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remains: Option<String>,
    /// How many events this record stands for, where it is more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Whether it must be on disk before it is acknowledged.
    #[serde(skip)]
    pub durable: bool,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It may run.
    Allow,
    /// It may not.
    Refuse,
}

/// Content that came by stdin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContentRecord {
    /// Its length in bytes.
    pub length: u64,
    /// Its SHA-256.
    pub sha256: String,
}

/// What confined a run: the keys of `enforcement` in a tool's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EnforcementRecord {
    no_new_privs: bool,
    landlock_abi: u32,
    seccomp: String,
    one_shot_exec: bool,
    cgroup: bool,
    network: String,
    absent: Vec<String>,
    lacking: Vec<String>,
    same_user: bool,
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepRecord {
    /// Its name.
    name: String,
    /// `exited`, `signaled`, `skipped` or `not_started`.
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    /// The step of the preparation that failed, and its errno.
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errno: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    killed_by: Option<String>,
    wall_us: u64,
    user_us: u64,
    system_us: u64,
    max_rss_kib: u64,
}

impl Record {
    /// A record that says nothing yet but what happened. Not durable.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            run: None,
            action: None,
            risk: None,
            caller: None,
            caller_proof: None,
            token_id: None,
            uid: None,
            via: None,
            peer: None,
            client: None,
            request: None,
            catalog: None,
            args: Vec::new(),
            argv: Vec::new(),
            content: None,
            decision: None,
            decided_by: None,
            rule: None,
            reason: None,
            run_as: None,
            enforcement: None,
            steps: Vec::new(),
            killed_by: None,
            duration_ms: None,
            remains: None,
            count: None,
            durable: false,
        }
    }

    /// The record as one JSON object in one line, at most [`RECORD`] bytes. `None` when it cannot be made
    /// that small, which bounded texts and lists rule out.
    pub(super) fn to_json(&self) -> Option<String> {
        let mut record = self.clone();
        let texts = [
            &mut record.run,
            &mut record.action,
            &mut record.caller,
            &mut record.token_id,
            &mut record.via,
            &mut record.peer,
            &mut record.client,
            &mut record.request,
            &mut record.decided_by,
            &mut record.rule,
            &mut record.reason,
            &mut record.run_as,
            &mut record.killed_by,
        ];
        for text in texts.into_iter().flatten() {
            shorten(text, TEXT);
        }
        // One budget for all: arguments and argv say much the same.
        record.argv.push(std::mem::take(&mut record.args));
        abbreviate(&mut record.argv);
        record.args = record.argv.pop().unwrap_or_default();
        serde_json::to_string(&record).ok().filter(|json| json.len() <= RECORD)
    }
}

impl From<&Content> for ContentRecord {
    fn from(content: &Content) -> Self {
        Self { length: content.length, sha256: hex(&content.sha256) }
    }
}

impl From<&packet::Enforcement> for EnforcementRecord {
    fn from(from: &packet::Enforcement) -> Self {
        Self {
            no_new_privs: from.no_new_privs,
            landlock_abi: from.landlock_abi,
            seccomp: from.seccomp.clone(),
            one_shot_exec: from.one_shot_exec,
            cgroup: from.cgroup,
            network: from.network.clone(),
            absent: from.absent.clone(),
            lacking: from.lacking.clone(),
            same_user: from.same_user,
        }
    }
}

impl StepRecord {
    /// How the step of that name ended.
    pub fn new(name: &str, outcome: &Outcome, killed_by: Option<&str>, usage: Usage) -> Self {
        let (word, exit_code, signal, stage, errno) = match outcome {
            Outcome::Exited(code) => ("exited", Some(*code), None, None, None),
            Outcome::Signaled(signal) => ("signaled", None, Some(*signal), None, None),
            Outcome::Skipped => ("skipped", None, None, None, None),
            Outcome::NotStarted { stage, errno } => {
                ("not_started", None, None, Some(stage.clone()), Some(*errno))
            }
        };
        Self {
            name: name.to_owned(),
            outcome: word,
            exit_code,
            signal,
            stage,
            errno,
            killed_by: killed_by.map(str::to_owned),
            wall_us: usage.wall_us,
            user_us: usage.user_us,
            system_us: usage.system_us,
            max_rss_kib: usage.max_rss_kib,
        }
    }
}

/// The word for the kind of a refusal, as `rule` has it.
pub fn rule(code: RefusalCode) -> &'static str {
    match code {
        RefusalCode::NoCatalog => "no_catalog",
        RefusalCode::Stale => "stale",
        RefusalCode::UnknownAction => "unknown_action",
        RefusalCode::Scope => "scope",
        RefusalCode::Argument => "argument",
        RefusalCode::Command => "command",
        RefusalCode::Mismatch => "mismatch",
        RefusalCode::Unsupported => "unsupported",
        RefusalCode::NotFound => "not_found",
        RefusalCode::NotExecutable => "not_executable",
        RefusalCode::Approval => "approval",
        RefusalCode::Audit => "audit",
        RefusalCode::Internal => "internal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(record: &Record) -> serde_json::Value {
        serde_json::from_str(&record.to_json().unwrap()).unwrap()
    }

    #[test]
    fn a_record_says_only_what_it_knows() {
        assert_eq!(Record::new(Kind::Started).to_json().unwrap(), r#"{"kind":"started"}"#);
        let record = Record {
            caller_proof: Some(CallerProof::DaemonSays),
            decision: Some(Decision::Refuse),
            durable: true,
            ..Record::new(Kind::Refused)
        };
        let expected = r#"{"kind":"refused","caller_proof":"daemon-says","decision":"refuse"}"#;
        assert_eq!(record.to_json().unwrap(), expected);
    }

    #[test]
    fn control_characters_cannot_leave_their_line() {
        let record = Record { peer: Some("x\n{\"seq\":9}\u{1b}[2J".into()), ..Record::new(Kind::Noted) };
        let text = record.to_json().unwrap();
        assert!(!text.contains(char::is_control), "{text}");
    }

    #[test]
    fn a_long_argument_is_replaced_by_its_size_and_digest() {
        let long = "x".repeat(130_000);
        let record =
            Record { argv: vec![vec!["/bin/echo".into(), long.clone()]], ..Record::new(Kind::Accepted) };
        let digest = hex(&hmac_sha256::Hash::hash(long.as_bytes()));
        assert_eq!(json(&record)["argv"][0][0], "/bin/echo");
        assert_eq!(json(&record)["argv"][0][1], format!("…(130000 bytes, sha256 {digest})"));
    }

    #[test]
    fn many_arguments_are_counted() {
        let step = vec!["\u{1}".repeat(60); 4096];
        let record = Record { argv: vec![step; 16], ..Record::new(Kind::Accepted) };
        let argv = &json(&record)["argv"];
        let last = argv[0].as_array().unwrap().last().unwrap().as_str().unwrap().to_owned();
        assert!(last.starts_with("…(") && last.contains(" arguments, sha256 "), "{last}");
        assert_eq!(argv[15].as_array().unwrap().len(), 1);
    }

    #[test]
    fn the_largest_texts_still_fit() {
        let text = || Some("\u{1}".repeat(200_000));
        let record = Record {
            run: text(),
            action: text(),
            caller: text(),
            token_id: text(),
            via: text(),
            peer: text(),
            client: text(),
            request: text(),
            decided_by: text(),
            rule: text(),
            reason: text(),
            run_as: text(),
            killed_by: text(),
            ..Record::new(Kind::Refused)
        };
        assert!(record.to_json().is_some());
    }

    #[test]
    fn a_step_says_how_it_ended() {
        let step = StepRecord::new("main", &Outcome::Exited(3), Some("timeout"), Usage::default());
        let record = Record { steps: vec![step], ..Record::new(Kind::Ended) };
        assert_eq!(json(&record)["steps"][0]["exit_code"], 3);
        assert_eq!(json(&record)["steps"][0]["killed_by"], "timeout");
        assert_eq!(json(&record)["steps"][0].get("signal"), None);
    }
}
