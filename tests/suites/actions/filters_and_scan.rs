#![forbid(unsafe_code)]
//! Filters, `max_scan`, `max_output` and escapes: what is left of a step's output, in bounded memory.

use gloveport_tests::mcp::ToolResult;
use gloveport_tests::{Pair, Scene, processes};
use serde_json::{Value, json};
use std::fs;

/// The high-water mark of a process's memory, KiB.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn all_filters() -> Value {
    json!(["match", "exclude", "tail", "head", "count"])
}

/// `two` prints four lines in each of two steps; one of them holds a secret.
fn pair() -> Pair {
    let scene = Scene::new();
    let probe = scene.probe();
    let lines = ["alpha 1", "beta 2", "password=hunter2-beta", "gamma 3"];
    let step = |name: &str, lines: &[&str]| {
        let argv: Vec<&str> = [probe.as_str(), "print"].into_iter().chain(lines.iter().copied()).collect();
        json!({"name": name, "exec": argv})
    };
    let two =
        json!({"steps": [step("first", &lines), step("second", &["beta 9"])], "filters": all_filters()});
    let actions = [
        scene.action("two", two),
        scene.exec("plain", &[&probe, "print", "x"]),
        scene.exec("some", &[&probe, "print", "x"]).with(json!({"filters": ["match"]})),
    ];
    scene.pair(&actions)
}

fn stdouts(result: &ToolResult) -> [&str; 2] {
    assert!(!result.is_error(), "{:#}", result.0);
    [0, 1].map(|step| result.step(step)["stdout"].as_str().expect("output"))
}

#[test]
fn filters_see_each_step_for_itself_and_after_redaction() {
    let pair = pair();
    let filtered = |filters: Value| pair.call("two", filters);
    assert_eq!(stdouts(&filtered(json!({"match": "beta"}))), ["beta 2\n", "beta 9\n"]);
    assert_eq!(stdouts(&filtered(json!({"exclude": "[0-9]"}))), ["password=[redacted]\n", ""]);
    assert_eq!(stdouts(&filtered(json!({"tail": 1}))), ["gamma 3\n", "beta 9\n"]);
    assert_eq!(stdouts(&filtered(json!({"head": 1}))), ["alpha 1\n", "beta 9\n"]);
    assert_eq!(
        stdouts(&filtered(json!({"match": "a", "exclude": "^a", "head": 1}))),
        ["beta 2\n", "beta 9\n"]
    );
    assert_eq!(stdouts(&filtered(json!({"match": "redacted"}))), ["password=[redacted]\n", ""]);
    // What was redacted cannot be asked for, not even by whether something matches.
    assert_eq!(stdouts(&filtered(json!({"match": "hunter2"}))), ["", ""]);
    let counted = filtered(json!({"count": true, "match": "hunter"}));
    assert_eq!((&counted.step(0)["count"], &counted.step(1)["count"]), (&json!(0), &json!(0)));
    let counted = filtered(json!({"count": true}));
    assert_eq!((&counted.step(0)["count"], &counted.step(1)["count"]), (&json!(4), &json!(1)));
    assert_eq!(stdouts(&filtered(json!({"count": false})))[1], "beta 9\n");
}

#[test]
fn only_what_is_declared_and_well_formed_is_accepted() {
    let pair = pair();
    let refused = |tool: &str, filters: Value, reason: &str| {
        let result = pair.call(tool, filters.clone());
        assert!(result.is_error() && result.structured()["steps"].is_null(), "{filters}: {:#}", result.0);
        assert!(result.text().contains(reason), "{filters}: {reason}: {}", result.text());
    };
    for filters in [json!({"tail": 1}), json!({"count": false}), json!({"match": "x"})] {
        refused("plain", filters, "does not take this filter");
    }
    refused("some", json!({"exclude": "x"}), "does not take this filter");
    refused("some", json!({"params": {"match": "x"}}), "not a parameter");
    // By presence: `count: false` counts as given.
    for filters in [
        json!({"tail": 1, "head": 1}),
        json!({"tail": 1, "count": true}),
        json!({"head": 1, "count": false}),
        json!({"tail": 1, "head": 1, "count": false}),
    ] {
        refused("two", filters, "give one of them at most");
    }
    for number in [json!(0), json!(-1), json!(1.5), json!("1"), json!(true)] {
        refused("two", json!({"tail": number}), "tail");
        refused("two", json!({"head": number}), "head");
    }
    for word in [json!("true"), json!(1)] {
        refused("two", json!({"count": word}), "count");
    }
    refused("two", json!({"match": 5}), "match");
    refused("two", json!({"match": "("}), "match");
    refused("two", json!({"match": "(?=x)"}), "match");
    refused("two", json!({"exclude": "(a)\\1"}), "exclude");
}

#[test]
fn a_pattern_has_200_characters_and_a_size_that_is_told() {
    let pair = pair();
    // Characters, not bytes.
    assert!(!pair.call("two", json!({"match": "é".repeat(200)})).is_error());
    let longer = pair.call("two", json!({"match": "é".repeat(201)}));
    assert!(longer.is_error() && longer.text().contains("200"), "{}", longer.text());
    // Short, and larger than a regular expression may become.
    for pattern in [r"\w{1000}{1000}", "(a{100}){100}{100}", r"(?:\pL{500}|\pN{500}){200}"] {
        let large = pair.call("two", json!({"match": pattern}));
        assert!(large.is_error(), "{pattern}: {:#}", large.0);
        let said = large.text();
        assert!(said.contains("1048576 bytes") && said.contains("match"), "{pattern}: {said}");
    }
    // What would take a backtracking engine for ever is linear here.
    let begun = std::time::Instant::now();
    assert!(!pair.call("two", json!({"match": "(a*)*(a|a)*(.*)*(.*)*b{0,50}$"})).is_error());
    assert!(begun.elapsed().as_secs() < 5);
}

#[test]
fn the_scan_limit_and_a_cut_are_two_flags_of_each_step() {
    let scene = Scene::new();
    let probe = scene.probe();
    let flood = |name: &str, bytes: &str| json!({"name": name, "exec": [probe, "flood", bytes]});
    let actions = [
        scene.action(
            "scan",
            json!({
                "steps": [flood("over", "5000"), flood("exact", "1000"), flood("under", "10")],
                "max_scan": "1000B",
            }),
        ),
        scene.action(
            "cut",
            json!({"steps": [flood("much", "5000"), flood("more", "5000")], "max_output": "2000B"}),
        ),
        scene.action(
            "both",
            json!({"steps": [flood("much", "5000")], "max_output": "100B", "max_scan": "500B"}),
        ),
        scene.action(
            "filtered",
            json!({
                "steps": [json!({"name": "lines", "exec": [probe, "print", "a", "b", "c", "d"]})],
                "max_scan": "4B", "filters": ["count", "match", "tail"],
            }),
        ),
    ];
    let pair = scene.pair(&actions);
    let flags = |tool: &str, step: usize| {
        let result = pair.call(tool, json!({}));
        let step = result.step(step);
        assert_eq!(step["exit_code"], 0, "{tool}: {:#}", result.0);
        let length = step["stdout"].as_str().expect("output").len();
        (
            step["scan_limit_reached"] == true,
            step["stdout_truncated"] == true,
            length,
            step["stdout_bytes"].clone(),
        )
    };
    assert_eq!(flags("scan", 0), (true, false, 1000, json!(5000)));
    assert_eq!(flags("scan", 1), (false, false, 1000, json!(1000)));
    assert_eq!(flags("scan", 2), (false, false, 10, json!(10)));
    // One budget for all steps, a quarter of it kept back for stderr until the last one.
    assert_eq!(flags("cut", 0), (false, true, 1500, json!(5000)));
    assert_eq!(flags("cut", 1), (false, true, 500, json!(5000)));
    assert_eq!(flags("both", 0), (true, true, 100, json!(5000)));
    // Raw bytes count, not what the filters leave.
    let result = pair.call("filtered", json!({"match": "d"}));
    assert_eq!(
        (&result.step(0)["stdout"], &result.step(0)["scan_limit_reached"]),
        (&json!(""), &json!(true))
    );
    let result = pair.call("filtered", json!({"count": true}));
    assert_eq!(result.step(0)["count"], 2, "{:#}", result.0);
}

#[test]
fn escapes_are_shown_removed_or_left_as_the_action_says() {
    let scene = Scene::new();
    let probe = scene.probe();
    // A colour, a window title, BEL, a direction override, a zero-width space, a C1 control, CR LF, invalid UTF-8.
    let bytes = "\u{1b}[31mred\u{1b}[0m\u{1b}]0;title\u{7} \u{7}a\u{202e}b\u{200b}c\u{9b}2Jd\r\n";
    let mut hex: String = bytes.bytes().map(|byte| format!("{byte:02x}")).collect();
    hex += "ff";
    let with = |name: &str, keys: Value| scene.exec(name, &[&probe, "bytes", &hex]).with(keys);
    let actions = [
        with("default", json!({})),
        with("visible", json!({"output": {"escapes": "visible"}})),
        with("strip", json!({"output": {"escapes": "strip"}})),
        with("raw", json!({"output": {"escapes": "raw"}})),
    ];
    let pair = scene.pair(&actions);
    let shown =
        |tool: &str| pair.call(tool, json!({})).step(0)["stdout"].as_str().unwrap_or_default().to_owned();
    let visible = "\\x1b[31mred\\x1b[0m\\x1b]0;title\\x07 \\x07a\\u{202e}b\\u{200b}c\\u{9b}2Jd\r\n\u{fffd}";
    assert_eq!(shown("default"), visible);
    assert_eq!(shown("visible"), visible);
    assert_eq!(shown("strip"), "red abcd\r\n\u{fffd}");
    assert_eq!(shown("raw"), format!("{bytes}\u{fffd}"));
    assert_eq!(pair.call("raw", json!({})).step(0)["lossy_utf8"], true);
    // A reader's text never carries what the fields do not.
    let text = pair.call("default", json!({})).text();
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text:?}");
    assert!(processes::of(pair.scene.run.number).is_empty());
}

/// They read gigabytes, and memory is measured.
mod alone {
    use super::*;

    #[test]
    fn a_flood_needs_no_memory_whatever_is_asked_of_it() {
        let scene = Scene::new();
        let yes = |name: &str, keys: Value| {
            scene.exec(name, &["/usr/bin/yes", "password=hunter2 and much more in this line"]).with(keys)
        };
        let probe = scene.probe();
        let actions = [
            yes("yes", json!({"timeout": "700ms", "filters": all_filters(), "max_scan": "16GiB"})),
            scene.exec("line", &[&probe, "flood", "300000000"]).with(json!({"filters": all_filters()})),
        ];
        let pair = scene.pair(&actions);
        let daemon = pair.process("gloveportd").pid;
        pair.call("yes", json!({"head": 1}));
        let before = peak(daemon);
        for filters in [
            json!({}),
            json!({"tail": 1_000_000}),
            json!({"head": 1_000_000, "match": "never"}),
            json!({"count": true, "exclude": "x"}),
        ] {
            let flood = pair.call("yes", filters.clone());
            assert_eq!(flood.structured()["timed_out"], true, "{:#}", flood.0);
            assert!(flood.step(0)["stdout_bytes"].as_u64() > Some(1 << 20), "{filters}: {:#}", flood.0);
            assert!(!flood.0.to_string().contains("hunter2"));
        }
        // One line of 300 MB.
        for filters in [json!({}), json!({"match": "x", "tail": 1}), json!({"count": true})] {
            let line = pair.call("line", filters.clone());
            assert_eq!(line.step(0)["stdout_bytes"], 300_000_000, "{filters}: {:#}", line.0);
            assert_eq!(line.structured()["exit_code"], 0, "{filters}: {:#}", line.0);
        }
        let grown = peak(daemon).saturating_sub(before);
        println!("the daemon's peak grew by {grown} KiB");
        assert!(grown < 16 * 1024, "the daemon's peak grew by {grown} KiB");
    }

    #[test]
    fn a_program_that_loses_its_reader_to_the_scan_limit_has_not_failed() {
        let scene = Scene::new();
        let probe = scene.probe();
        // Beyond the limit another GiB is read and thrown away; then the pipe closes.
        let yes = json!({"name": "yes", "exec": ["/usr/bin/yes"]});
        let after = json!({"name": "after", "exec": [probe, "print", "x"]});
        let keys = json!({"max_scan": "1KiB", "timeout": "60s", "steps": [yes, after]});
        let single = json!({"max_scan": "1KiB", "timeout": "60s", "exec": ["/usr/bin/yes"]});
        let honest = json!({"exec": [probe, "signal", "13"]});
        let actions = [
            scene.action("continue", keys.clone()).with(json!({"on_error": "continue"})),
            scene.action("stop", keys),
            scene.action("single", single),
            scene.action("own", honest),
        ];
        let pair = scene.pair(&actions);
        let went_on = pair.call("continue", json!({}));
        assert_eq!(went_on.structured()["exit_code"], 0, "{:#}", went_on.0);
        assert_eq!(went_on.structured()["success"], true);
        let step = went_on.step(0);
        assert_eq!((&step["status"], &step["signal"]), (&json!("success"), &json!(13)), "{step:#}");
        assert_eq!(
            (&step["scan_limit_reached"], &step["stdout"].as_str().map(str::len)),
            (&json!(true), &Some(1024))
        );
        assert_eq!(went_on.step(1)["stdout"], "x\n");
        assert_eq!(pair.call("single", json!({})).structured()["success"], true);
        // A SIGPIPE that the program brought upon itself is a failure like any signal.
        assert_eq!(pair.call("own", json!({})).structured()["exit_code"], 141);
        // The helper does not take the daemon's word for why the pipe closed: it keeps to `on_error: stop`, and
        // then the result does not claim that all went well.
        let stopped = pair.call("stop", json!({}));
        assert_eq!(stopped.step(1)["status"], "skipped", "{:#}", stopped.0);
        assert_eq!(stopped.structured()["success"], false, "{:#}", stopped.0);
        assert_eq!(stopped.structured()["exit_code"], 141, "{:#}", stopped.0);
    }

    #[test]
    fn replies_that_grow_by_being_written_as_json_are_bounded_one_by_one_and_together() {
        // Case 45: a control character takes six bytes in JSON.
        let scene = Scene::new();
        let file = scene.file("ones", vec![1; 8_388_607]);
        let keys = json!({
            "sandbox": {"read": [file]}, "max_output": "16MiB", "output": {"escapes": "raw"}, "concurrency": 64,
        });
        let action = scene.exec("ones", &["/usr/bin/cat", &file]).with(keys);
        let pair = scene.pair(&[action]);
        let daemon = pair.process("gloveportd").pid;
        let one = pair.call("ones", json!({}));
        assert_eq!(one.step(0)["stdout_bytes"], 8_388_607);
        assert_eq!(one.step(0)["stdout_truncated"], true);
        let encoded = one.0.to_string().len();
        let before = peak(daemon);
        let results: Vec<ToolResult> = std::thread::scope(|scope| {
            let calls: Vec<_> = (0..50).map(|_| scope.spawn(|| pair.call("ones", json!({})))).collect();
            calls.into_iter().map(|call| call.join().expect("a call")).collect()
        });
        let grown = peak(daemon) - before;
        println!("one reply has {encoded} bytes; fifty at once made the daemon's peak grow by {grown} KiB");
        // The output stands in it twice: for programs and for readers.
        assert!(encoded < 40 << 20, "one reply has {encoded} bytes");
        assert!(grown < 384 * 1024, "the daemon's peak grew by {grown} KiB");
        for result in &results {
            let answered = result.step(0)["stdout_bytes"] == 8_388_607;
            assert!(answered || result.text().starts_with("Busy"), "{}", result.text());
        }
        assert!(results.iter().filter(|result| !result.is_error()).count() >= 3);
    }
}
