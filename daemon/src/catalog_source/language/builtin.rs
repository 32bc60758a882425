#![forbid(unsafe_code)]
//! The keys of a built-in's configuration and of a command's rules.

use super::Absent::{Default, Nothing, Required};
use super::Effect::{Decides, Narrows, Widens, Words};
use super::sandbox::SANDBOX;
use super::{Block, Shape, key};

/// The highest count that JSON readers agree upon.
const MANY: i64 = (1 << 53) - 1;

pub(super) static CONFIG: Block = Block {
    id: "builtin_config",
    title: "Configuration of a built-in",
    about: "The value of `builtin_config`. Which built-in takes a key stands with each.",
    keys: &[
        key(
            "commands",
            Shape::List(&Shape::Either(&[Shape::Text, Shape::Block(&RULE)])),
            Nothing,
            Widens,
            "`command`: a rule for each program. `redis_command`: names out of `GET MGET HGET HLEN TTL \
             TYPE EXISTS STRLEN LLEN SCARD ZCARD SCAN INFO`; all of them where it is not given.",
        ),
        key("roots", Shape::List(&Shape::Text), Nothing, Widens, "`log_search`: directories and globs."),
        key("read", Shape::List(&Shape::Text), Nothing, Widens, "`read_file`: directories and globs."),
        key("write", Shape::List(&Shape::Text), Nothing, Widens, "`write_file`: directories and globs."),
        key(
            "server",
            Shape::Text,
            Nothing,
            Decides,
            "`mysql_query`, `redis_command`: `host:port`, or the path of a socket.",
        ),
        key("database", Shape::Text, Nothing, Decides, "`mysql_query`: the database."),
        key(
            "db",
            Shape::Integer(0, u32::MAX as i64),
            Nothing,
            Decides,
            "`redis_command`: the database's number.",
        ),
        key(
            "credential",
            Shape::Name,
            Nothing,
            Decides,
            "`mysql_query`, `redis_command`: a file of `/etc/gloveport/credentials`, by name. Only the \
             helper opens it.",
        ),
        key(
            "url_prefixes",
            Shape::List(&Shape::Text),
            Nothing,
            Widens,
            "`http_get`: what a URL begins with.",
        ),
        key(
            "addresses",
            Shape::List(&Shape::Text),
            Default("[public]"),
            Widens,
            "`http_get`: addresses that it may connect to: `public`, `private`, `loopback`, `link_local` \
             or a CIDR.",
        ),
        key(
            "headers",
            Shape::List(&Shape::Text),
            Nothing,
            Widens,
            "`http_get`: request headers that a caller may give, by name.",
        ),
        key("max_files", Shape::Integer(1, MANY), Nothing, Widens, "`log_search`: files of one search."),
        key("max_scan", Shape::Size, Nothing, Widens, "`log_search`: bytes read, after decompression."),
        key("max_matches", Shape::Integer(1, MANY), Nothing, Widens, "`log_search`: matches returned."),
        key("max_context", Shape::Integer(0, MANY), Nothing, Widens, "`log_search`: lines around a match."),
        key("max_rows", Shape::Integer(1, MANY), Nothing, Widens, "`mysql_query`: rows of a result."),
        key(
            "max_bytes",
            Shape::Size,
            Nothing,
            Widens,
            "All but `command` and `log_search`: bytes of a result, a body or a file's content.",
        ),
        key("timeout", Shape::Time, Nothing, Widens, "`mysql_query`: time of a statement on the server."),
    ],
};

static RULE: Block = Block {
    id: "command_rule",
    title: "Rule of a command",
    about: "An element of `commands` of `builtin: command`, in the terms of getopt(3). Only what is named \
            is accepted; long options are never abbreviated.",
    keys: &[
        key(
            "name",
            Shape::Name,
            Required,
            Words,
            "The first word of the command. The program's path stands for it too.",
        ),
        key("exec", Shape::Path, Required, Decides, "The program's absolute path."),
        key(
            "exec_fallbacks",
            Shape::List(&Shape::Path),
            Nothing,
            Widens,
            "Other absolute paths, tried only when the first does not exist.",
        ),
        key(
            "allow_interpreter",
            Shape::Boolean,
            Default("false"),
            Widens,
            "Whether the program may be an interpreter; the rules then say what it may be asked for.",
        ),
        key("args", Shape::List(&Shape::Text), Nothing, Decides, "Fixed arguments put first."),
        key(
            "short",
            Shape::Optstring,
            Nothing,
            Widens,
            "Short options as in an optstring: in `\"ln:b::\"` `-n` takes a value, `-b` only one in the \
             same word.",
        ),
        key(
            "long",
            Shape::List(&Shape::Text),
            Nothing,
            Widens,
            "Long options without dashes: `name=` takes a value, `name=?` may take one.",
        ),
        key(
            "single_dash",
            Shape::List(&Shape::Text),
            Nothing,
            Widens,
            "Options of find(1)'s kind: `\"-name:\"` takes the next word. They take the place of `short` \
             and `long`.",
        ),
        key(
            "words",
            Shape::List(&Shape::Text),
            Nothing,
            Widens,
            "What the operands begin with, word by word: `status`, `\"addr show\"`; nothing may follow one \
             that ends in `$`.",
        ),
        key(
            "required",
            Shape::List(&Shape::Text),
            Nothing,
            Narrows,
            "Options that must be given, with their dashes; `\"-V|--version\"` means one of these.",
        ),
        key("operands", Shape::Range, Default("0"), Widens, "How many operands, `words` not counted."),
        key(
            "operand",
            Shape::Pattern,
            Nothing,
            Narrows,
            "What each operand must match as a whole; without it any text without control characters.",
        ),
        key(
            "any",
            Shape::Boolean,
            Default("false"),
            Widens,
            "Any arguments. Only for programs that can neither write nor start anything.",
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
