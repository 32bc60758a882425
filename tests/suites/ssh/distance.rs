//! What a host's distance costs: the way to sshd is made longer by a known time.

use super::site;
use gloveport_tests::sshd::Place;
use gloveport_tests::stdio::Bridge;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// There and back.
const ROUND_TRIP: Duration = Duration::from_millis(200);

/// Leads to a place over a long way; where it begins.
fn long_way(to: &Place<'_>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let begins = listener.local_addr().expect("an address");
    let end = (to.address.clone(), to.port);
    std::thread::spawn(move || {
        for near in listener.incoming().flatten() {
            let far = TcpStream::connect(&end).expect("sshd");
            for stream in [&near, &far] {
                stream.set_nodelay(true).expect("TCP_NODELAY");
            }
            pass(&near, &far);
            pass(&far, &near);
        }
    });
    begins
}

/// Passes bytes on, each half a round trip after it came, however many are on their way.
fn pass(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().expect("a descriptor"), to.try_clone().expect("a descriptor"));
    let (on_the_way, arriving) = mpsc::channel::<(Instant, Vec<u8>)>();
    std::thread::spawn(move || {
        let mut chunk = [0; 16 * 1024];
        while let Ok(read @ 1..) = from.read(&mut chunk) {
            if on_the_way.send((Instant::now() + ROUND_TRIP / 2, chunk[..read].to_vec())).is_err() {
                return;
            }
        }
    });
    std::thread::spawn(move || {
        for (due, bytes) in arriving {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// The quickest of a few calls: what the way costs, without what else the machine has to do.
fn quickest(client: &Bridge) -> Duration {
    let call = || {
        let begun = Instant::now();
        assert_eq!(client.call("say", json!({"word": "x"})).stdout(), "x");
        begun.elapsed()
    };
    call();
    (0..8).map(|_| call()).min().unwrap_or_default()
}

#[test]
fn a_warm_call_costs_at_most_one_and_a_half_round_trips_more_than_a_local_one() {
    let site = site();
    let begins = long_way(&site.keys.loopback(2201));
    site.keys.know("far", &Place { address: begins.ip().to_string(), port: begins.port(), namespace: None });
    let local = quickest(&site.client(&["web1"], &[]));
    let far = quickest(&site.client(&["far"], &[]));
    assert!(far >= ROUND_TRIP, "the way is not as long as it should be: {far:?}");
    let more = far.saturating_sub(local);
    assert!(more <= ROUND_TRIP * 3 / 2, "{far:?} instead of {local:?}: {more:?} more");
}
