//! The splitter against a shell's own rules, and every way round a list of names that was found in the
//! field (the cases are those of public threads about other programs).

use super::{Blocked, resolve, split};
use crate::catalog::BuiltinConfig;
use crate::limits;
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// A table of the usual programs.
fn table() -> BuiltinConfig {
    serde_json::from_str(
        r#"{"commands": [
        {"name": "echo", "exec": "/usr/bin/echo", "any": true},
        {"name": "cat", "exec": "/usr/bin/cat", "short": "n", "operands": "0..8"},
        {"name": "ls", "exec": "/usr/bin/ls", "short": "1aAdhlrRStu", "long": ["all", "color="], "operands": "0..64"},
        {"name": "sort", "exec": "/usr/bin/sort", "short": "bdfgnruk:t:", "long": ["reverse", "key="],
         "operands": "0..16"},
        {"name": "uniq", "exec": "/usr/bin/uniq", "short": "c", "operands": "0..1"},
        {"name": "find", "exec": "/usr/bin/find", "operands": "0..16",
         "single_dash": ["-name:", "-type:", "-maxdepth:", "-printf:", "-print"]},
        {"name": "grep", "exec": "/usr/bin/grep", "short": "rine:", "operands": "1..8"},
        {"name": "last", "exec": "/usr/bin/last", "operands": "0..1", "operand": "[a-z]+"},
        {"name": "git", "exec": "/usr/bin/git", "words": ["log", "status$"], "long": ["format=", "oneline"],
         "operands": "0..4"},
        {"name": "uptime", "exec": "/usr/bin/uptime"},
        {"name": "hostname", "exec": "/usr/bin/hostname", "short": "fs"},
        {"name": "date", "exec": "/usr/bin/date", "short": "u", "operands": "0..1", "operand": "\\+[%A-Za-z -]+"},
        {"name": "ip", "exec": "/usr/sbin/ip", "short": "46", "words": ["addr show", "link show", "route"]},
        {"name": "journalctl", "exec": "/usr/bin/journalctl", "short": "u:n:", "long": ["no-pager"]},
        {"name": "systemctl", "exec": "/usr/bin/systemctl", "words": ["status", "is-active"], "operands": "0..4"},
        {"name": "python3", "exec": "/usr/bin/python3", "allow_interpreter": true, "short": "V",
         "long": ["version"], "required": ["-V|--version"]},
        {"name": "ping", "exec": "/usr/bin/ping", "short": "c:W:n", "required": ["-c"], "operands": 1},
        {"name": "less", "exec": "/usr/bin/less", "short": "b::x", "long": ["colour=?"]}
    ]}"#,
    )
    .unwrap()
}

fn words(command: &str) -> Vec<String> {
    split(command).unwrap_or_else(|blocked| panic!("{command}: {blocked}"))
}

/// The argv of a command as one line, or the rule that blocks it.
fn outcome(command: &str) -> Result<String, &'static str> {
    match resolve(&table(), command) {
        Ok(resolved) => {
            let argv = resolved.argv.iter().map(|arg| String::from_utf8_lossy(arg));
            Ok(argv.collect::<Vec<_>>().join("|"))
        }
        Err(blocked) => Err(blocked.rule),
    }
}

fn blocked(command: &str) -> Blocked {
    resolve(&table(), command).expect_err(command)
}

#[test]
fn words_are_split_as_posix_says() {
    for (command, expected) in [
        ("ls", &["ls"][..]),
        ("  ls \t -l  ", &["ls", "-l"]),
        ("a'b c'd", &["ab cd"]),
        ("a\"b c\"d", &["ab cd"]),
        ("'' \"\"", &["", ""]),
        ("\\a\\ b", &["a b"]),
        ("'a\\b'", &["a\\b"]),
        ("\"a\\b\\\\c\\\"d\\$e\\`f\"", &["a\\b\\c\"d$e`f"]),
        ("\"it's\"", &["it's"]),
        ("'say \"x\"'", &["say \"x\""]),
        ("a\\'b", &["a'b"]),
        ("'a;b|c&d`e$(f)<g>h\ni'", &["a;b|c&d`e$(f)<g>h\ni"]),
        ("\"a;b|c&d<g>h\"", &["a;b|c&d<g>h"]),
        ("\\;\\|\\&\\`\\<\\>", &[";|&`<>"]),
        ("$HOME ~ * ? [a] {a,b} # !x", &["$HOME", "~", "*", "?", "[a]", "{a,b}", "#", "!x"]),
        ("a=b", &["a=b"]),
        ("é 日本", &["é", "日本"]),
        ("a\u{a0}b", &["a\u{a0}b"]),
    ] {
        assert_eq!(words(command), expected, "{command}");
    }
    assert!(words("").is_empty() && words(" \t ").is_empty());
}

#[test]
fn what_a_shell_would_act_upon_is_refused_by_name_and_place() {
    for (command, what, position) in [
        ("ls; id", "`;`", 2),
        ("ls | id", "`|`", 3),
        ("ls & id", "`&`", 3),
        ("ls && id", "`&`", 3),
        ("ls || id", "`|`", 3),
        ("echo `id`", "a backquote", 5),
        ("echo $(id)", "`$(`", 5),
        ("echo \"$(id)\"", "`$(`", 6),
        ("echo \"`id`\"", "a backquote", 6),
        ("echo ${X}", "`${`", 5),
        ("echo \"a${X}\"", "`${`", 7),
        ("cat <(id)", "`<`", 4),
        ("cat < f", "`<`", 4),
        ("cat > f", "`>`", 4),
        ("cat 2>&1", "`>`", 5),
        ("uptime\nid", "a line break", 6),
        ("uptime\r\nid", "a line break", 6),
        ("uptime\u{2028}id", "a line break", 6),
        ("uptime\u{85}id", "a line break", 6),
        ("é; id", "`;`", 1),
    ] {
        let blocked = split(command).expect_err(command);
        assert_eq!(blocked.rule, "syntax");
        assert!(blocked.message.starts_with(what), "{command}: {blocked}");
        assert!(blocked.message.contains(&format!("(position {position})")), "{command}: {blocked}");
        assert!(blocked.message.contains("No shell runs here"), "{blocked}");
    }
    for (command, expected) in [
        ("a\0b", "NUL cannot be part of a command (position 1)"),
        ("'a\0b'", "NUL cannot be part of a command (position 2)"),
        ("\"a\0b\"", "NUL cannot be part of a command (position 2)"),
        ("\\\0", "NUL cannot be part of a command (position 1)"),
        ("ls 'a", "the ' at position 3 is never closed"),
        ("ls \"a", "the \" at position 3 is never closed"),
        ("ls \\", "the \\ at position 3 escapes nothing"),
    ] {
        assert_eq!(split(command).expect_err(command).message, expected);
    }
    for command in ["a\\\nb", "\"a\\\nb\"", "a\\\r\nb"] {
        assert!(split(command).expect_err(command).message.contains("a line continuation"), "{command:?}");
    }
}

/// Each refused command stands with a harmless neighbour, so that nothing is refused for the wrong reason.
#[test]
fn the_ways_round_other_lists_end_here_and_their_neighbours_run() {
    let cases: &[(&str, Result<&str, &str>)] = &[
        // Substitution.
        ("echo $(id)", Err("syntax")),
        ("echo `id`", Err("syntax")),
        ("echo '$(id)'", Ok("echo|$(id)")),
        ("cat <(id)", Err("syntax")),
        ("cat '<(id)'", Ok("cat|<(id)")),
        // Quotes and wildcards in the name.
        ("\"rm\" f", Err("name")),
        ("r\\m f", Err("name")),
        ("/usr/bin/su*o id", Err("name")),
        ("\"ls\" f", Ok("ls|f")),
        ("l\\s f", Ok("ls|f")),
        // Separators.
        ("uptime\nid", Err("syntax")),
        ("uptime & id", Err("syntax")),
        ("uptime", Ok("uptime")),
        // Paths.
        ("/bin/rm f", Err("name")),
        ("/tmp/evil/ls", Err("name")),
        ("./ls", Err("name")),
        ("../../usr/bin/ls", Err("name")),
        ("/usr/bin/../bin/ls", Err("name")),
        ("//usr/bin/ls", Err("name")),
        ("/usr/bin/ls -l", Ok("ls|-l")),
        // Interpreters and wrappers.
        ("sh -c id", Err("name")),
        ("env id", Err("name")),
        ("xargs -a f id", Err("name")),
        ("timeout 5 id", Err("name")),
        ("busybox id", Err("name")),
        ("python3 -i", Err("option")),
        ("python3 -c 1", Err("option")),
        ("python3 f.py", Err("required")),
        ("python3 --version f.py", Err("operands")),
        ("python3 -V", Ok("python3|-V")),
        ("python3 --version", Ok("python3|--version")),
        // A prefix is not a match.
        ("ls; touch /tmp/x", Err("syntax")),
        ("lsx", Err("name")),
        // White space.
        ("rm\t-rf x", Err("name")),
        ("rm  -rf x", Err("name")),
        ("rm\u{a0}-rf x", Err("name")),
        ("ls\t-l  x", Ok("ls|-l|x")),
        // sort starts programs and writes files.
        ("sort -S 1k --compress-program=/tmp/p big", Err("option")),
        ("sort --compress-program=/tmp/p big", Err("option")),
        ("sort --comp=/tmp/p", Err("option")),
        ("sort -o out f", Err("option")),
        ("sort -oout", Err("option")),
        ("sort -uo out", Err("option")),
        ("sort --out=out", Err("option")),
        ("sort --files0-from=f", Err("option")),
        ("sort --rev f", Err("option")),
        ("sort f -o out", Err("option")),
        ("sort f", Ok("sort|f")),
        ("sort -rn -k2 -t , --key=1 f", Ok("sort|-rn|-k2|-t|,|--key=1|f")),
        ("sort -- -o", Ok("sort|--|-o")),
        // find and uniq have side doors.
        ("find . -exec touch x +", Err("option")),
        ("find . -execdir id +", Err("option")),
        ("find . -ok id", Err("option")),
        ("find . -delete", Err("option")),
        ("find . -fprintf x y", Err("option")),
        ("find . -fls x", Err("option")),
        ("find -- -delete", Err("option")),
        ("find . -name '*.log' -printf '%p'", Ok("find|.|-name|*.log|-printf|%p")),
        ("find . -name -delete", Ok("find|.|-name|-delete")),
        ("uniq in out", Err("operands")),
        ("uniq -c in", Ok("uniq|-c|in")),
        // Programs within programs, and privilege.
        ("sed 'w /tmp/x' f", Err("name")),
        ("awk 'BEGIN{system(1)}'", Err("name")),
        ("ls $(touch x)", Err("syntax")),
        ("env sudo id", Err("name")),
        ("nohup sudo id", Err("name")),
        ("FOO=1 sudo id", Err("name")),
        ("FOO=1", Err("name")),
        ("echo x | sudo whoami", Err("syntax")),
        ("echo 'x | sudo whoami'", Ok("echo|x | sudo whoami")),
        // A dash where an operand is meant.
        ("systemctl status --root=/tmp", Err("option")),
        ("systemctl status -Hroot@evil", Err("option")),
        ("systemctl status nginx", Ok("systemctl|status|nginx")),
        ("cat -- -rf", Ok("cat|--|-rf")),
        // Programs that look like reading.
        ("hostname evil", Err("operands")),
        ("date -s 2000-01-01", Err("option")),
        ("date 01010000", Err("operands")),
        ("date +%F", Ok("date|+%F")),
        ("ip link set lo down", Err("words")),
        ("ip link show", Ok("ip|link|show")),
        ("ip addr", Err("words")),
        ("journalctl --vacuum-size=1", Err("option")),
        ("journalctl -u ssh -n 5 --no-pager", Ok("journalctl|-u|ssh|-n|5|--no-pager")),
        // No word is refused for what it looks like.
        ("git log --format=%H", Ok("git|log|--format=%H")),
        ("last reboot", Ok("last|reboot")),
        ("grep -r reboot /etc", Ok("grep|-r|reboot|/etc")),
    ];
    for (command, expected) in cases {
        assert_eq!(outcome(command), expected.map(str::to_owned), "{command:?}");
    }
}

#[test]
fn options_are_read_as_getopt_reads_them() {
    let cases: &[(&str, Result<&str, &str>)] = &[
        ("ls -la", Ok("ls|-la")),
        ("ls -lX", Err("option")),
        ("ls -l:", Err("option")),
        ("ls -é", Err("option")),
        ("ls -", Ok("ls|-")),
        ("ls --all=x", Err("option")),
        ("ls --color", Err("option")),
        ("ls --color never", Ok("ls|--color|never")),
        ("ls ---", Err("option")),
        ("sort -k", Err("option")),
        // What looks like an option is no value of another: a program that holds the value for optional
        // would read it as the option (`journalctl -n --vacuum-size=1`).
        ("sort -k -r", Err("option")),
        ("sort -k --output=x", Err("option")),
        ("sort -k-r", Ok("sort|-k-r")),
        ("sort -k -1", Ok("sort|-k|-1")),
        ("ls --color --all", Err("option")),
        ("sort -k 'a\nb'", Err("option")),
        ("less -b5", Ok("less|-b5")),
        ("less -b 5", Err("operands")),
        ("less --colour", Ok("less|--colour")),
        ("less --colour=red", Ok("less|--colour=red")),
        ("ping host", Err("required")),
        ("ping -c 1 host", Ok("ping|-c|1|host")),
        ("ping -c 1 host other", Err("operands")),
        ("git status x", Err("words")),
        ("git status", Ok("git|status")),
        ("git", Err("words")),
        ("cat 'a\nb'", Err("operands")),
        ("last Reboot", Err("operands")),
    ];
    for (command, expected) in cases {
        assert_eq!(outcome(command), expected.map(str::to_owned), "{command:?}");
    }
}

#[test]
fn a_refusal_names_the_rule_and_what_is_allowed() {
    assert_eq!(
        blocked("ls --recursive").to_string(),
        "Command blocked by policy (rule: option): `ls` may not be called with `--recursive`. Allowed: -1 -a \
         -A -d -h -l -r -R -S -t -u --all --color=VALUE. An operator can permit more in the signed catalogue"
    );
    assert!(blocked("rm x").message.starts_with("`rm` is not an allowed command. Allowed: echo cat ls "));
    assert_eq!(blocked("uniq a b").message, "`uniq` takes 0 to 1 operands, not 2");
    assert_eq!(blocked("ping x").message, "`ping` must be called with -c");
    assert_eq!(blocked("python3").message, "`python3` must be called with -V or --version");
    let message = blocked("ls --color --all").message;
    assert!(message.ends_with("write it in one word: `--color=--all`"), "{message}");
    assert_eq!(blocked(" ").message, "the command is empty");
    let shown = blocked(&format!("{}\u{1b}[2J", "x".repeat(500))).message;
    assert!(!shown.contains('\u{1b}') && shown.find("` is not").unwrap() < 100, "{shown}");
}

#[test]
fn a_command_of_a_megabyte_is_refused_by_its_length_alone() {
    let command = "ls ".repeat(400_000);
    let start = Instant::now();
    let blocked = blocked(&command);
    assert!(start.elapsed() < Duration::from_millis(50));
    assert_eq!(blocked.rule, "length");
    assert_eq!(blocked.message, "the command is 1200000 bytes long; at most 8192");
    let longest = format!("echo {}", "x".repeat(limits::COMMAND - 5));
    assert!(resolve(&table(), &longest).is_ok());
    assert_eq!(outcome(&format!("{longest}x")), Err("length"));
}

proptest! {
    /// Whatever is quoted with '…' comes through as it is.
    #[test]
    fn quoted_text_comes_through_unchanged(texts in prop::collection::vec("[^\0]{0,12}", 1..5)) {
        let quote = |text: &String| format!("'{}'", text.replace('\'', "'\\''"));
        let quoted: Vec<String> = texts.iter().map(quote).collect();
        prop_assert_eq!(words(&quoted.join(" ")), texts);
    }

    /// Nothing panics, and what is accepted holds neither NUL nor a second program.
    #[test]
    fn any_text_is_a_command_or_a_refusal(command in "(ls|sort|find|echo)?[ -~\t\n\u{0}éß\u{2028}]{0,40}") {
        if let Ok(resolved) = resolve(&table(), &command) {
            prop_assert_eq!(resolved.argv.first().map(Vec::as_slice), Some(resolved.rule.name.as_bytes()));
            prop_assert!(resolved.argv.iter().all(|word| !word.contains(&0)));
        }
    }
}
