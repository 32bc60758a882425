//! What many clients cost: memory for those that never come back, and time for an answer in a stream.

use super::pair;
use super::wire::{STREAM, legacy};
use gloveport_tests::kept::Kept;
use gloveport_tests::{Pair, processes};
use serde_json::json;

/// Thousands of clients that initialise and are never seen again; how much the daemon grew, KiB.
fn abandon(pair: &Pair, clients: usize) -> u64 {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "a client that crashes", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string();
    let daemon = pair.process("gloveportd").pid;
    let mut connection = Kept::open(pair);
    connection.ask(&body);
    let before = processes::resident(daemon);
    for _ in 0..clients {
        let status = connection.ask(&body).status;
        assert!(status.ends_with("200 OK"), "{status}");
    }
    processes::resident(daemon).saturating_sub(before)
}

#[test]
fn ten_thousand_abandoned_sessions_take_the_memory_of_a_few_hundred() {
    let pair = pair();
    let few = abandon(&pair, 500);
    let many = abandon(&pair, 10_000);
    eprintln!("the daemon grew by {few} KiB with 500 abandoned clients, by {many} KiB with 10,000 more");
    assert!(many < 512, "the daemon grew by {many} KiB");
    let ping = legacy(&pair, json!(1), "ping", json!({}));
    assert_eq!(pair.send(&ping).status, 200);
}

mod alone {
    use super::{Kept, STREAM, json, pair};
    use gloveport_tests::Pair;
    use serde_json::Value;
    use std::time::{Duration, Instant};

    /// The median time of 50 calls on one connection, and the content type of their answers.
    fn median(pair: &Pair, params: &Value) -> (Duration, String) {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let mut connection = Kept::open(pair);
        let mut kind = String::new();
        let mut times: Vec<Duration> = (0..50)
            .map(|_| {
                let begun = Instant::now();
                kind = connection.ask(&body).kind;
                begun.elapsed()
            })
            .collect();
        times.sort();
        (times[times.len() / 2], kind)
    }

    #[test]
    fn an_answer_in_a_stream_does_not_wait_for_an_acknowledgement() {
        let pair = pair();
        let (plain, _) = median(&pair, &json!({"name": "fail"}));
        let (streamed, kind) = median(&pair, &json!({"name": "fail", "_meta": {"progressToken": 1}}));
        assert_eq!(kind, STREAM);
        eprintln!("50 calls on one connection: {plain:?} each as a document, {streamed:?} as a stream");
        // Without TCP_NODELAY a stream waits 40 ms for the kernel's delayed acknowledgement.
        assert!(
            streamed < plain + Duration::from_millis(20),
            "{plain:?} as a document, {streamed:?} as a stream"
        );
    }
}
