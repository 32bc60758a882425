//! Packets: what is written reads back, and nothing else is read at all.

use super::*;
use proptest::prelude::*;
use std::time::{Duration, Instant};

fn text() -> impl Strategy<Value = String> {
    "[ -~é日\u{0}]{0,20}"
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..40)
}

fn digest() -> impl Strategy<Value = [u8; 32]> {
    any::<[u8; 32]>()
}

fn scalar() -> impl Strategy<Value = Scalar> {
    prop_oneof![
        any::<bool>().prop_map(Scalar::Boolean),
        any::<i64>().prop_map(Scalar::Integer),
        bytes().prop_map(Scalar::Text),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        scalar().prop_map(Value::from),
        prop::collection::vec(scalar(), 0..6).prop_map(Value::List),
    ]
}

fn caller() -> impl Strategy<Value = Caller> {
    (text(), text(), any::<Option<u32>>(), text(), text())
        .prop_map(|(via, peer, uid, client, request)| Caller { via, peer, uid, client, request })
}

fn request() -> impl Strategy<Value = Request> {
    let argument = (text(), value()).prop_map(|(name, value)| Argument { name, value });
    let content =
        prop::option::of((any::<u64>(), digest()).prop_map(|(length, sha256)| Content { length, sha256 }));
    let argv = prop::collection::vec(prop::collection::vec(bytes(), 0..4), 0..3);
    let run = (
        any::<u32>(),
        digest(),
        prop::option::of(text()),
        caller(),
        text(),
        prop::collection::vec(argument, 0..5),
        argv,
        content,
    )
        .prop_map(|(version, digest, token, caller, action, args, argv, content)| {
            Request::Run(Box::new(Run { version, digest, token, caller, action, args, argv, content }))
        });
    let note = (caller(), text(), text(), text())
        .prop_map(|(caller, action, rule, detail)| Request::Note(Note { caller, action, rule, detail }));
    let end = text().prop_map(|by| Request::End { by });
    prop_oneof![any::<u32>().prop_map(|page| Request::Status { page }), run, note, end]
}

fn event() -> impl Strategy<Value = Event> {
    let receipt = || (any::<u64>(), digest()).prop_map(|(seq, hash)| Receipt { seq, hash });
    let outcome = prop_oneof![
        any::<i32>().prop_map(Outcome::Exited),
        any::<i32>().prop_map(Outcome::Signaled),
        Just(Outcome::Skipped),
        (text(), any::<i32>()).prop_map(|(stage, errno)| Outcome::NotStarted { stage, errno }),
    ];
    prop_oneof![
        (text(), any::<u64>()).prop_map(|(run, deadline_ms)| Event::Accepted {
            run,
            deadline_ms,
            enforcement: Enforcement::default()
        }),
        (text(), any::<u64>()).prop_map(|(id, timeout_ms)| Event::AwaitingApproval { id, timeout_ms }),
        any::<u32>().prop_map(|index| Event::StepStarted { index }),
        (any::<u32>(), outcome, prop::option::of(text())).prop_map(|(index, outcome, killed_by)| {
            Event::StepEnded { index, outcome, killed_by, usage: Usage::default() }
        }),
        receipt().prop_map(|receipt| Event::Ended { receipt }),
        (text(), prop::option::of(receipt())).prop_map(|(detail, receipt)| Event::Refused {
            code: RefusalCode::Mismatch,
            detail,
            receipt
        }),
        Just(Event::Busy),
    ]
}

proptest! {
    #[test]
    fn a_request_reads_back(request in request()) {
        prop_assert_eq!(Request::decode(&request.encode().unwrap()), Ok(request));
    }

    #[test]
    fn an_event_reads_back(event in event()) {
        prop_assert_eq!(Event::decode(&event.encode().unwrap()), Ok(event));
    }

    /// What is read is what would be written: no second encoding of anything, and never a panic.
    #[test]
    fn arbitrary_bytes_are_refused_or_canonical(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(request) = Request::decode(&bytes) {
            prop_assert_eq!(request.encode().unwrap(), bytes.clone());
        }
        if let Ok(event) = Event::decode(&bytes) {
            prop_assert_eq!(event.encode().unwrap(), bytes);
        }
    }

    /// The same of bytes that are nearly a packet.
    #[test]
    fn a_damaged_packet_is_refused_or_canonical(request in request(), at in any::<prop::sample::Index>(), byte: u8) {
        let mut bytes = request.encode().unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(request) = Request::decode(&bytes) {
            prop_assert_eq!(request.encode().unwrap(), bytes);
        }
    }

    #[test]
    fn a_cut_or_lengthened_packet_is_refused(request in request(), cut in any::<prop::sample::Index>()) {
        let bytes = request.encode().unwrap();
        prop_assert!(Request::decode(&bytes[..cut.index(bytes.len())]).is_err());
        let longer = [bytes.as_slice(), &[0]].concat();
        prop_assert_eq!(Request::decode(&longer), Err(PacketError::Trailing));
    }
}

#[test]
fn a_number_in_a_longer_form_is_refused() {
    assert_eq!(Request::Status { page: 5 }.encode().unwrap(), [0, 5]);
    for longer in [&[0, 251, 5, 0][..], &[0, 252, 5, 0, 0, 0], &[251, 0, 0, 5]] {
        assert_eq!(Request::decode(longer), Err(PacketError::NotCanonical), "{longer:?}");
    }
    assert_eq!(Request::decode(&[0, 253, 5, 0, 0, 0, 0, 0, 0, 0]), Err(PacketError::Malformed));
}

/// A packet that announces more elements than it holds ends at once.
#[test]
fn a_length_bomb_is_refused_at_once() {
    let huge = [253, 255, 255, 255, 255, 255, 255, 255, 255];
    let run = Run {
        version: 1,
        digest: [0; 32],
        token: None,
        caller: Caller::default(),
        action: String::new(),
        args: Vec::new(),
        argv: Vec::new(),
        content: None,
    };
    let plain = Request::Run(Box::new(run)).encode().unwrap();
    let start = Instant::now();
    for at in 0..plain.len() {
        let bomb = [&plain[..at], &huge[..]].concat();
        assert!(Request::decode(&bomb).is_err(), "at {at}");
        let just_over = [&plain[..at], &[252, 0, 0, 4, 0][..], &vec![0; 1000]].concat();
        assert!(Request::decode(&just_over).is_err(), "at {at}");
    }
    for variant in 0..=7 {
        assert!(Event::decode(&[&[variant], &huge[..]].concat()).is_err());
    }
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[test]
fn a_packet_has_a_largest_size_both_ways() {
    let of = |length: usize| {
        Request::Note(Note {
            caller: Caller::default(),
            action: String::new(),
            rule: String::new(),
            detail: "x".repeat(length),
        })
    };
    let overhead = of(100_000).encode().unwrap().len() - 100_000;
    let largest = of(limits::PACKET - overhead).encode().unwrap();
    assert_eq!(largest.len(), limits::PACKET);
    assert!(Request::decode(&largest).is_ok());
    assert_eq!(of(limits::PACKET - overhead + 1).encode(), Err(PacketError::TooLarge));
    assert_eq!(Request::decode(&vec![0; limits::PACKET + 1]), Err(PacketError::TooLarge));
}

#[test]
fn what_fits_into_a_packet_can_be_read() {
    let of = |args, argv| {
        let (action, caller) = ("a".into(), Caller::default());
        Request::Run(Box::new(Run {
            version: VERSION,
            digest: [0; 32],
            token: None,
            caller,
            action,
            args,
            argv,
            content: None,
        }))
    };
    let argument = |value| Argument { name: "x".into(), value };
    for request in [
        of(vec![argument(Value::Text(vec![b'x'; limits::ARGUMENT]))], Vec::new()),
        of(vec![argument(Value::List(vec![Scalar::Boolean(true); 90_000]))], Vec::new()),
        of(vec![Argument { name: String::new(), value: Value::Null }; 90_000], Vec::new()),
        of(Vec::new(), vec![vec![Vec::new(); limits::ARGV]; limits::STEPS]),
        of(Vec::new(), vec![Vec::new(); 190_000]),
    ] {
        assert_eq!(Request::decode(&request.encode().unwrap()), Ok(request));
    }
}

#[test]
fn arguments_and_tokens_are_not_printed() {
    let run = Run {
        version: VERSION,
        digest: [0; 32],
        token: Some("gp_hidden".into()),
        caller: Caller::default(),
        action: "a".into(),
        args: vec![Argument { name: "password".into(), value: Value::from("hidden") }],
        argv: vec![vec![b"hidden".to_vec()]],
        content: None,
    };
    let shown = format!("{:?}", Request::Run(Box::new(run)));
    assert!(shown.contains("password: a text") && !shown.contains("hidden"), "{shown}");
}
