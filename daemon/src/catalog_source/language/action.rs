#![forbid(unsafe_code)]
//! The keys of an action, its steps and its script.

use super::Absent::{Default, Nothing, Required};
use super::Effect::{Decides, Narrows, Widens, Words};
use super::builtin::CONFIG;
use super::param::PARAM;
use super::sandbox::{LIMITS, SANDBOX};
use super::{Block, Shape, key};

pub(super) static ACTION: Block = Block {
    id: "action",
    title: "Action",
    about: "One YAML document is one action. Several actions stand in one file as documents separated by \
            `---`.",
    keys: &[
        key(
            "name",
            Shape::Name,
            Required,
            Words,
            "The tool's name: 1 to 64 of `A-Z a-z 0-9 . _ -`. No two actions of a catalogue share one.",
        ),
        key("title", Shape::Text, Nothing, Words, "A short title for people."),
        key("description", Shape::Text, Required, Words, "What the action does. Agents choose by this text."),
        key(
            "risk",
            Shape::Word(&[
                ("read", "changes nothing"),
                ("write", "changes something that can be put right"),
                ("dangerous", "may cost data or the host"),
            ]),
            Required,
            Decides,
            "What it may do to its host. Tokens are bounded by it, and the record of a `write` or \
             `dangerous` run is on disk before the program starts.",
        ),
        key(
            "params",
            Shape::Map(&Shape::Block(&PARAM)),
            Nothing,
            Widens,
            "What a caller fills in, by name (letters, digits and `_`). Nothing else of a call reaches the \
             program.",
        ),
        key(
            "arguments",
            Shape::Word(&[
                ("nested", "parameters under `params`, filters beside it"),
                ("flat", "parameters at the top level"),
            ]),
            Default("nested"),
            Words,
            "Where the parameters stand in the tool's input.",
        ),
        key(
            "exec",
            Shape::Argv,
            Nothing,
            Decides,
            "The program's absolute path and its arguments. `\"{name}\"` is a whole element and stands for \
             a parameter; a list within the list is an optional group: present when each of its parameters \
             is given (a boolean: when it is true). Exactly one of `exec`, `steps`, `script`, `builtin` is \
             given. No shell runs.",
        ),
        key(
            "exec_fallbacks",
            Shape::List(&Shape::Path),
            Nothing,
            Widens,
            "Other absolute paths of the program, tried only when the first does not exist. Never a retry.",
        ),
        key(
            "steps",
            Shape::List(&Shape::Block(&STEP)),
            Nothing,
            Decides,
            "1 to 16 programs that run in order, under one timeout and one output budget.",
        ),
        key(
            "script",
            Shape::Block(&SCRIPT),
            Nothing,
            Decides,
            "A script beside the source, whose text is signed with the action.",
        ),
        key(
            "builtin",
            Shape::Word(&[
                ("command", "one program out of a table, with rules for its options"),
                ("log_search", "search in plain and gzip logs"),
                ("mysql_query", "one reading statement"),
                ("redis_command", "one reading command"),
                ("http_get", "GET within signed URL prefixes"),
                ("read_file", "read a file under given roots"),
                ("write_file", "write a file under given roots, atomically"),
            ]),
            Nothing,
            Decides,
            "A built-in action. Its sandbox follows from `builtin_config`.",
        ),
        key(
            "builtin_config",
            Shape::Block(&CONFIG),
            Nothing,
            Decides,
            "The limits and resources of the built-in. It can only tighten what the built-in has.",
        ),
        key(
            "allow_interpreter",
            Shape::Boolean,
            Default("false"),
            Widens,
            "Lets `exec` and `steps` name an interpreter (a shell, Python, …). `catalog lint`, `catalog sign` \
             and the helper warn. A `#!` file never starts: name its interpreter in `script`.",
        ),
        key(
            "on_error",
            Shape::Word(&[
                ("stop", "the rest is skipped, and stays visible as skipped"),
                ("continue", "the next step runs"),
            ]),
            Default("stop"),
            Widens,
            "What happens after a failed step. The exit code is that of the first failed one.",
        ),
        key(
            "timeout",
            Shape::Either(&[Shape::Time, Shape::Block(&TIMEOUT)]),
            Default("30s"),
            Widens,
            "How long a run may take, 1ms to 1h. TERM comes first, KILL after 200 ms, for the whole \
             process tree.",
        ),
        key(
            "max_output",
            Shape::Size,
            Default("32KiB"),
            Widens,
            "Bytes that reach the client: stdout and stderr of all steps together, up to 16MiB. stderr \
             keeps at least a quarter.",
        ),
        key(
            "max_scan",
            Shape::Size,
            Default("64MiB"),
            Widens,
            "Raw stdout bytes that are read per step before the filters end, up to 16GiB. What follows is read and \
             thrown away; after 1GiB more the pipe is closed. A program that this ends by SIGPIPE has not failed, \
             but `on_error: stop` skips the steps behind it.",
        ),
        key(
            "filters",
            Shape::List(&Shape::Word(&[
                ("match", "keep lines that match a pattern"),
                ("exclude", "drop lines that match a pattern"),
                ("tail", "the last lines only"),
                ("head", "the first lines only"),
                ("count", "the number of lines only"),
            ])),
            Nothing,
            Words,
            "Filters that a caller may apply to each step's stdout, after redaction.",
        ),
        key(
            "redact",
            Shape::Block(&REDACT),
            Default("{builtin: [secrets]}"),
            Narrows,
            "What is removed from output before anybody sees it.",
        ),
        key("output", Shape::Block(&OUTPUT), Nothing, Words, "How output is presented."),
        key(
            "result",
            Shape::Word(&[
                ("full", "`action, success, steps, enforcement, audit`"),
                ("by_step", "`{step: stdout or \"Error: …\"}`"),
                ("command", "`{success, exit_code, stdout, stderr}` or `{success: false, error}`"),
            ]),
            Default("full"),
            Words,
            "The form of the structured result.",
        ),
        key(
            "run_as",
            Shape::Text,
            Default("gloveport-run"),
            Decides,
            "The account: a name of `/etc/passwd`, or `\"uid:gid\"` in numbers.",
        ),
        key(
            "groups",
            Shape::List(&Shape::Text),
            Nothing,
            Widens,
            "Supplementary groups, all of them; what `/etc/group` says about the account does not count. \
             `?` before a name: may be absent on a host.",
        ),
        key(
            "cwd",
            Shape::Either(&[Shape::Path, Shape::Block(&DIRECTORY)]),
            Default("/"),
            Decides,
            "Where the program starts.",
        ),
        key(
            "env",
            Shape::Map(&Shape::Text),
            Nothing,
            Decides,
            "Variables beside `PATH LANG TZ HOME USER LOGNAME`. Those that make programs load or run code \
             (`LD_…`, `PYTHON…`, `PAGER`, …) are refused.",
        ),
        key("limits", Shape::Block(&LIMITS), Nothing, Widens, "Resource limits of a run."),
        key(
            "sandbox",
            Shape::Block(&SANDBOX),
            Nothing,
            Widens,
            "What the kernel lets the program do. Without it: read the system base, write nothing, no \
             network, no second program.",
        ),
        key(
            "approval",
            Shape::Word(&[("required", "held until `gloveport approve ID`"), ("none", "runs at once")]),
            Default("none"),
            Widens,
            "Whether a person at the host must say yes first.",
        ),
        key("approval_timeout", Shape::Time, Default("10m"), Words, "How long an approval is waited for."),
        key(
            "on_disconnect",
            Shape::Word(&[
                ("cancel", "the run ends"),
                (
                    "finish",
                    "the run goes on to its end, also without the daemon; then a program waits when it has \
                     printed 64 KiB",
                ),
            ]),
            Default("cancel"),
            Widens,
            "What a closed connection means for a run.",
        ),
        key(
            "keep_result",
            Shape::Time,
            Default("10m"),
            Words,
            "Beside `on_disconnect: finish`: how long the result of a run is kept in memory for the caller who \
             started it (the tool `run_result`).",
        ),
        key("concurrency", Shape::Integer(1, 1024), Default("8"), Widens, "Runs of this action at once."),
        key(
            "host_root",
            Shape::Boolean,
            Default("false"),
            Widens,
            "Says that the action can become root on the host, and is meant to: needed for AF_UNIX with \
             uid 0 or with a group such as docker, disk or sudo. Only beside `risk: dangerous`.",
        ),
    ],
};

static STEP: Block = Block {
    id: "step",
    title: "Step",
    about: "An element of `steps`.",
    keys: &[
        key("name", Shape::Name, Required, Words, "Its name in the result."),
        key("exec", Shape::Argv, Required, Decides, "As `exec` of an action."),
        key(
            "exec_fallbacks",
            Shape::List(&Shape::Path),
            Nothing,
            Widens,
            "Other absolute paths, tried only when the first does not exist.",
        ),
        key(
            "sandbox",
            Shape::Block(&SANDBOX),
            Nothing,
            Decides,
            "A sandbox of its own. It takes the place of the action's as a whole.",
        ),
    ],
};

static SCRIPT: Block = Block {
    id: "script",
    title: "Script",
    about: "The value of `script`. The interpreter gets the script as a sealed memory file; Python runs \
            with `-I`.",
    keys: &[
        key("file", Shape::Text, Required, Words, "The file beside the source, by name."),
        key("interpreter", Shape::Path, Required, Decides, "The absolute path of its interpreter."),
        key("args", Shape::Argv, Nothing, Decides, "The script's own arguments."),
        key(
            "body",
            Shape::Text,
            Nothing,
            Decides,
            "The text, put here by `catalog build`. Not given in a source.",
        ),
        key(
            "sha256",
            Shape::Text,
            Nothing,
            Words,
            "Its digest, put here by `catalog build`. Not given in a source.",
        ),
    ],
};

static TIMEOUT: Block = Block {
    id: "timeout_param",
    title: "Timeout from a parameter",
    about: "The value of `timeout` where a caller may choose it.",
    keys: &[
        key(
            "param",
            Shape::Text,
            Required,
            Words,
            "The integer parameter, in seconds; clamped to 1 s up to `max`.",
        ),
        key("default", Shape::Time, Required, Words, "What holds where it is not given."),
        key("max", Shape::Time, Required, Widens, "The longest that a caller can get."),
    ],
};

static DIRECTORY: Block = Block {
    id: "cwd_param",
    title: "Directory from a parameter",
    about: "The value of `cwd` where a caller may choose it.",
    keys: &[
        key(
            "param",
            Shape::Text,
            Required,
            Words,
            "The path or string parameter; `/` where it is not given.",
        ),
        key(
            "roots",
            Shape::List(&Shape::Path),
            Required,
            Widens,
            "Directories that it must lie under, also after resolving symbolic links as `run_as`.",
        ),
    ],
};

static REDACT: Block = Block {
    id: "redact",
    title: "Redaction",
    about: "The value of `redact`.",
    keys: &[
        key(
            "builtin",
            Shape::List(&Shape::Word(&[(
                "secrets",
                "token formats, private keys, passwords in URLs and settings",
            )])),
            Default("[secrets]"),
            Narrows,
            "Built-in recognisers. `[]` switches them off.",
        ),
        key("patterns", Shape::List(&Shape::Pattern), Nothing, Narrows, "Patterns of the action's own."),
    ],
};

static OUTPUT: Block = Block {
    id: "output",
    title: "Output",
    about: "The value of `output`.",
    keys: &[key(
        "escapes",
        Shape::Word(&[
            ("visible", "shown as text, `\\x1b`"),
            ("strip", "removed"),
            ("raw", "left as they are"),
        ]),
        Default("visible"),
        Words,
        "What becomes of terminal escapes, bidirectional and zero-width characters.",
    )],
};
