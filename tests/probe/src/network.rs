//! Ways out of the host, and to other programs on it.

use crate::raw::{self, Outcome};
use crate::{number, text};
use std::net::{IpAddr, Ipv4Addr};

const MPTCP: i32 = 262;
const DATAGRAM: i32 = libc::SOCK_DGRAM;
const STREAM: i32 = libc::SOCK_STREAM;

/// The attacks of this module.
pub fn attack(subcommand: &str, args: &[&str]) -> Option<Outcome> {
    Some(match subcommand {
        // connect HOST PORT, and so on; HOST is an address.
        "connect" => socket(libc::AF_INET, STREAM, 0).and_then(|fd| connect(fd, args)),
        "mptcp" => socket(libc::AF_INET, STREAM, MPTCP).and_then(|fd| connect(fd, args)),
        "udp" => socket(libc::AF_INET, DATAGRAM, 0).and_then(|fd| send(fd, args, 0)),
        // fastopen HOST PORT: connects by sending, which Landlock's port rule does not see.
        "fastopen" => {
            socket(libc::AF_INET, STREAM, 0).and_then(|fd| send(fd, args, libc::MSG_FASTOPEN as usize))
        }
        // bind HOST PORT, then listen.
        "bind" => socket(libc::AF_INET, STREAM, 0).and_then(|fd| {
            let (place, length) = inet(args);
            raw::call(libc::SYS_bind, &[fd, place, length])?;
            raw::call(libc::SYS_listen, &[fd, 1])
        }),
        // listen: the kernel chooses the port.
        "listen" => socket(libc::AF_INET, STREAM, 0).and_then(|fd| raw::call(libc::SYS_listen, &[fd, 1])),
        // unix PATH, abstract NAME: a stream to another program.
        "unix" => unix(text(args, 0).as_bytes()),
        "abstract" => unix(format!("\0{}", text(args, 0)).as_bytes()),
        "socketpair" => {
            let ends: &mut [i32; 2] = Box::leak(Box::new([0, 0]));
            let place = ends.as_mut_ptr() as usize;
            raw::call(libc::SYS_socketpair, &[libc::AF_UNIX as usize, STREAM as usize, 0, place])
        }
        "raw" => socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
        "icmp" => socket(libc::AF_INET, DATAGRAM, libc::IPPROTO_ICMP),
        "packet" => socket(libc::AF_PACKET, libc::SOCK_RAW, 0),
        "vsock" => socket(libc::AF_VSOCK, STREAM, 0),
        // netlink PROTOCOL
        "netlink" => socket(libc::AF_NETLINK, libc::SOCK_RAW, number(args, 0) as i32),
        // socket DOMAIN TYPE PROTOCOL: any.
        "socket" => socket(number(args, 0) as i32, number(args, 1) as i32, number(args, 2) as i32),
        _ => return None,
    })
}

fn socket(domain: i32, kind: i32, protocol: i32) -> Outcome {
    raw::call(libc::SYS_socket, &[domain as usize, kind as usize, protocol as usize])
}

/// A `sockaddr_in` of the first two arguments: its address and its length.
fn inet(args: &[&str]) -> (usize, usize) {
    let host = match text(args, 0).parse() {
        Ok(IpAddr::V4(host)) => host,
        _ => Ipv4Addr::LOCALHOST,
    };
    let mut place = (libc::AF_INET as u16).to_ne_bytes().to_vec();
    place.extend((number(args, 1) as u16).to_be_bytes());
    place.extend(host.octets());
    place.extend([0; 8]);
    let length = place.len();
    (raw::bytes(place), length)
}

fn connect(fd: usize, args: &[&str]) -> Outcome {
    let (place, length) = inet(args);
    raw::call(libc::SYS_connect, &[fd, place, length])
}

fn send(fd: usize, args: &[&str], flags: usize) -> Outcome {
    let (place, length) = inet(args);
    raw::call(libc::SYS_sendto, &[fd, raw::pointer("out"), 3, flags, place, length])
}

fn unix(name: &[u8]) -> Outcome {
    let fd = socket(libc::AF_UNIX, STREAM, 0)?;
    let mut place = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
    place.extend(name);
    let length = place.len();
    raw::call(libc::SYS_connect, &[fd, raw::bytes(place), length])
}
