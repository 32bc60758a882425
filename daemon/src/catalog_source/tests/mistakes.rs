//! Every kind of mistake, with its place and the way out.

use super::Scratch;

/// A source in which line 4 holds what is tried.
fn mistake(line: &str) -> String {
    let text = format!("name: a\ndescription: d\nrisk: read\n{line}\n");
    let mistakes = Scratch::new().with("a.yaml", text).mistakes();
    assert_eq!(mistakes.len(), 1, "{line}: {mistakes:?}");
    mistakes.into_iter().next().unwrap()
}

#[test]
fn what_yaml_and_the_types_refuse_is_said_at_its_place() {
    let cases = [
        ("timout: 20s", "a.yaml:4:1: unknown key `timout`; did you mean `timeout`?"),
        ("exec: [/bin/true]\nrun-as: x", "a.yaml:5:1: unknown key `run-as`; did you mean `run_as`?"),
        (
            "output: {colour: raw}\nexec: [/bin/true]",
            "a.yaml:4:10: unknown key `colour`; the keys here are: escapes",
        ),
        ("params: {u: {type: strng}}", "a.yaml:4:20: `strng` is not known here; did you mean `string`?"),
        (
            "exec: [/bin/true, {unit}]",
            "a.yaml:4:19: this must be a text, a \"{parameter}\", or a list of those (an optional group), \
             not map; a placeholder is quoted: \"{parameter}\"",
        ),
        (
            "exec: [/bin/true, 5]",
            "a.yaml:4:19: this must be a text, a \"{parameter}\", or a list of those (an optional group), \
             not integer `5`; quote it",
        ),
        (
            "title: 5",
            "a.yaml:4:8: quote this text, \"5\": without quotes YAML reads it as a number or a boolean",
        ),
        ("params: {u: {type: string, optional: yes}}", "a.yaml:4:38: write true or false here"),
        ("params: {u: {type: integer, max: 5OO}}", "a.yaml:4:34: this must be an integer"),
        ("concurrency: -1", "a.yaml:4:14: this must be an integer"),
        ("params: {u: {optional: true}}", "a.yaml:4:13: the key `type` is missing"),
        ("risk: write", "a.yaml:4:1: the key `risk` stands twice"),
        (
            "timeout: 20",
            "a.yaml:4:10: this must be a time such as 20s, or {param, default, max}, not integer `20`",
        ),
        (
            "max_output: 5kb",
            "a.yaml:4:13: this must be a size such as 512B, 256KB (1000) or 256KiB (1024), not string \"5kb\"",
        ),
        (
            "sandbox: {network: [{conect: [443]}]}",
            "a.yaml:4:22: `conect` is not known here; did you mean `connect`?",
        ),
        (
            "exec: [a, b: c: d]",
            "a.yaml:4:15: not YAML: while parsing a flow mapping, did not find expected ',' or '}'",
        ),
        ("title: &x t", "a.yaml:4:11: anchors (`&…`) are not part of the language; write the value out"),
        ("title: !!str t", "a.yaml:4:14: tags (`!…`) are not part of the language; write the value alone"),
        ("<<: {title: t}", "a.yaml:4:1: merge keys (`<<`) are not part of the language"),
        ("? [a]\n: b", "a.yaml:4:3: a key is a text; to write \"{parameter}\" as a value, quote it"),
    ];
    for (line, expected) in cases {
        assert_eq!(mistake(line), expected, "{line}");
    }
}

#[test]
fn what_the_check_refuses_is_said_at_its_place() {
    let cases = [
        ("title: t", "a.yaml:1:1: action `a`: give exactly one of exec, steps, script, builtin"),
        (
            "exec: [bin/true]",
            "a.yaml:4:1: action `a`, exec: the first element is the program's absolute path",
        ),
        (
            "exec:\n- /bin/true\n- '{unit}'",
            "a.yaml:6:3: action `a`, exec.1: `unit` is not a parameter of this action",
        ),
        (
            "exec: [/bin/bash, -c, id]",
            "a.yaml:4:8: action `a`, exec.0: `/bin/bash` is an interpreter: it would run whatever text it is \
             given; use `script`, or say `allow_interpreter: true`",
        ),
        (
            "exec: [/bin/true]\nparams:\n  u:\n    type: string\n    pattern: '('",
            "a.yaml:8:14: action `a`, params.u.pattern: not a pattern (RE2 syntax without Unicode classes): \
             found open group without closing ')'",
        ),
        (
            "exec: [/bin/true]\nparams: {u: {type: integer, pattern: x}}",
            "a.yaml:5:38: action `a`, params.u.pattern: a parameter of type integer has no `pattern`",
        ),
        (
            "exec: [/bin/true]\nsandbox: {private_tmp: 2GiB}",
            "a.yaml:5:24: action `a`, sandbox.private_tmp: 2147483648 is not within 4096 to 1073741824",
        ),
        (
            "exec: [/bin/true]\nredact: {patterns: [a, '(']}",
            "a.yaml:5:24: not a pattern (RE2 syntax): error: unclosed group",
        ),
        (
            "exec: [/bin/true]\nrun_as: root\nsandbox: {network: [unix]}",
            "a.yaml:6:11: action `a`, sandbox.network: unix sockets as root are as good as root on this host; \
             take another account, or say `risk: dangerous` and `host_root: true`",
        ),
        (
            "builtin: command\nparams: {command: {type: string}}\nbuiltin_config:\n  commands:\n  - {name: ls, \
             exec: /bin/ls}\n  - {name: x, exec: bin/x}",
            "a.yaml:9:21: action `a`, builtin_config.commands.1.exec: `bin/x` is not an absolute path without \
             `.`, `..` and empty parts",
        ),
    ];
    for (line, expected) in cases {
        let found = mistake(line);
        assert!(found.starts_with(expected), "{line}\n found {found}");
    }
}

#[test]
fn a_mistake_is_shown_with_its_line_and_a_caret() {
    let scratch = Scratch::new().with("a.yaml", "name: a\n\tx: y\n");
    let errors = scratch.read().unwrap_err();
    assert!(errors[0].to_string().lines().count() == 3, "{}", errors[0]);
    let scratch = Scratch::new().with("a.yaml", "name: a\ndescription: d\nrisk: rad\nexec: [/bin/true]\n");
    let text = scratch.read().unwrap_err()[0].to_string();
    assert!(text.ends_with("\n3 | risk: rad\n  |       ^"), "{text}");
    let long = format!("name: a\ndescription: {}\nrisk: rad\n", "é".repeat(5000));
    assert!(Scratch::new().with("a.yaml", long).read().unwrap_err()[0].to_string().len() < 400);
}

#[test]
fn all_mistakes_of_all_files_are_reported_at_once() {
    let good = "name: good\ndescription: d\nrisk: read\nexec: [/bin/true]\n";
    let scratch = Scratch::new()
        .with("a.yaml", "name: a\nrisk: read\n---\nname: b\ndescription: d\nrisk: reed\n---\nnme: 1\n")
        .with("b.yml", format!("{good}---\n{}", good.replace("good", "x y")))
        .with("c.yaml", b"name: \xff\n")
        .with("d.yaml", "[unclosed")
        .with(".hidden.yaml", "nonsense")
        .with("readme.txt", "nonsense");
    assert_eq!(
        scratch.mistakes(),
        [
            "a.yaml:1:1: the key `description` is missing",
            "a.yaml:6:7: `reed` is not known here; did you mean `read`?",
            "a.yaml:8:1: unknown key `nme`; did you mean `name`?",
            "b.yml:6:7: action `x y`, name: a name is 1 to 64 of the characters A-Z a-z 0-9 . _ -",
            "c.yaml: is not UTF-8: the first wrong byte is at 6",
            "d.yaml:1:1: not YAML: unclosed bracket '['",
        ]
    );
}

#[test]
fn a_name_that_stands_twice_names_both_places() {
    let action = "name: same\ndescription: d\nrisk: read\nexec: [/bin/true]\n";
    let mistakes =
        Scratch::new().with("a.yaml", format!("# one\n{action}")).with("b.yaml", action).mistakes();
    assert_eq!(mistakes.len(), 1);
    assert!(mistakes[0].starts_with("b.yaml:1:7: the action `same` stands twice; the first is at "));
    assert!(mistakes[0].ends_with("a.yaml:2"), "{mistakes:?}");
    let mistakes = Scratch::new().with("a.yaml", format!("{action}---\n{action}")).mistakes();
    assert_eq!(mistakes, ["a.yaml:6:7: the action `same` stands twice; the first is at line 1 of this file"]);
}

#[test]
fn sources_that_hold_nothing_are_mistakes() {
    let empty = Scratch::new();
    assert!(empty.mistakes()[0].ends_with("holds no *.yaml or *.yml file"));
    let comments = Scratch::new().with("a.yaml", "# nothing\n---\n---\n~\n");
    assert!(comments.mistakes()[0].ends_with("holds no action"), "{:?}", comments.mistakes());
    let missing = super::Sources::read(&[empty.path().join("none")]).unwrap_err();
    assert!(missing[0].to_string().contains("cannot be read"));
}

#[test]
fn bombs_end_in_a_mistake_and_not_in_memory() {
    let aliases = (0..9).fold("a0: &a0 [x, x]\n".to_owned(), |text, n| {
        format!("{text}a{}: &a{} [{}]\n", n + 1, n + 1, vec![format!("*a{n}"); 9].join(", "))
    });
    for (text, expected) in [
        (aliases, "anchors"),
        ("[".repeat(20_000), "not YAML"),
        (format!("exec: [{}]", "a, ".repeat(30_000)), "too large"),
        ("x".repeat(1_100_000), "is larger than"),
    ] {
        let mistakes = Scratch::new().with("a.yaml", &text).mistakes();
        assert_eq!(mistakes.len(), 1);
        assert!(mistakes[0].contains(expected), "{expected}: {mistakes:?}");
    }
}

#[test]
fn a_script_is_a_small_text_file_beside_its_source() {
    let action = |file: &str| {
        format!(
            "name: a\ndescription: d\nrisk: read\nscript: {{file: {file}, interpreter: /usr/bin/python3}}\n"
        )
    };
    for (file, expected) in [
        ("sub/x.py", "name a file beside this one"),
        ("..", "name a file beside this one"),
        ("'/etc/passwd'", "name a file beside this one"),
        ("none.py", "cannot be read"),
        ("link.py", "is no regular file"),
        ("latin.py", "is not UTF-8"),
        ("large.py", "is larger than 1048576 bytes"),
    ] {
        let scratch = Scratch::new()
            .with("a.yaml", action(file))
            .with("good.py", "print(1)\n")
            .with("latin.py", b"\xe9")
            .with("large.py", "#".repeat(1_048_577));
        std::os::unix::fs::symlink("good.py", scratch.path().join("link.py")).unwrap();
        let mistakes = scratch.mistakes();
        assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        assert!(mistakes[0].starts_with("a.yaml:4:16: ") && mistakes[0].contains(expected), "{mistakes:?}");
    }
    let given = "name: a\ndescription: d\nrisk: read\nscript: {file: x, interpreter: /bin/sh, body: id}\n";
    assert!(Scratch::new().with("a.yaml", given).mistakes()[0].contains("puts the text here"));
}
