#![forbid(unsafe_code)]
//! The classes of sockets: which sockets the filter lets a program make, and how a result names them.

use super::seccomp::{Rules, all_of, dword, masked};
use gloveport_contract::catalog::{Network, NetworkClass};
use seccompiler::{BackendError, SeccompCmpOp, SeccompRule};

/// TCP ports that may be connected to.
pub fn connect_ports(network: &Network) -> Vec<u16> {
    let mut ports: Vec<u16> = network
        .classes()
        .iter()
        .flat_map(|class| match class {
            NetworkClass::Connect(ports) => ports.clone(),
            NetworkClass::Dns => vec![53],
            _ => Vec::new(),
        })
        .collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// TCP ports that may be bound.
pub fn bind_ports(network: &Network) -> Vec<u16> {
    network
        .classes()
        .iter()
        .flat_map(|class| if let NetworkClass::Bind(ports) = class { ports.clone() } else { Vec::new() })
        .collect()
}

/// The name of a class, without its ports.
pub fn name(class: &NetworkClass) -> &'static str {
    match class {
        NetworkClass::Netlink => "netlink",
        NetworkClass::Unix => "unix",
        NetworkClass::Dns => "dns",
        NetworkClass::Icmp => "icmp",
        NetworkClass::Connect(_) => "connect",
        NetworkClass::Bind(_) => "bind",
    }
}

/// The words for a result on a kernel of this Landlock ABI: `none`, or `dns (UDP to any host and port),
/// connect:443`.
pub fn describe(network: &Network, abi: u32) -> String {
    let ports = |ports: &[u16]| ports.iter().map(u16::to_string).collect::<Vec<_>>().join(",");
    let words: Vec<String> = network
        .classes()
        .iter()
        .map(|class| match class {
            NetworkClass::Netlink | NetworkClass::Unix => name(class).to_owned(),
            NetworkClass::Dns if !dns_has_tcp(abi) => "dns (UDP to any host and port, no TCP)".to_owned(),
            NetworkClass::Dns | NetworkClass::Icmp => format!("{} (UDP to any host and port)", name(class)),
            NetworkClass::Connect(list) | NetworkClass::Bind(list) => {
                format!("{}:{}", name(class), ports(list))
            }
        })
        .collect();
    match network {
        Network::Namespace => "namespace (empty, no other host)".to_owned(),
        _ if words.is_empty() => "none".to_owned(),
        _ => words.join(", "),
    }
}

/// Without port rules (Landlock ABI 4) TCP could go anywhere, so names are resolved by UDP alone.
fn dns_has_tcp(abi: u32) -> bool {
    abi >= 4
}

/// A kind of socket: family, type and protocol, as socket(2) takes them.
type Socket = (libc::c_int, libc::c_int, libc::c_int);

const STREAM: libc::c_int = libc::SOCK_STREAM;
const DATAGRAM: libc::c_int = libc::SOCK_DGRAM;

/// TCP under both families. Protocol 262, MPTCP, is not among them: it would walk around port rules.
const TCP: [Socket; 4] = [
    (libc::AF_INET, STREAM, 0),
    (libc::AF_INET, STREAM, libc::IPPROTO_TCP),
    (libc::AF_INET6, STREAM, 0),
    (libc::AF_INET6, STREAM, libc::IPPROTO_TCP),
];
const UDP: [Socket; 4] = [
    (libc::AF_INET, DATAGRAM, 0),
    (libc::AF_INET, DATAGRAM, libc::IPPROTO_UDP),
    (libc::AF_INET6, DATAGRAM, 0),
    (libc::AF_INET6, DATAGRAM, libc::IPPROTO_UDP),
];
const ECHO: [Socket; 2] =
    [(libc::AF_INET, DATAGRAM, libc::IPPROTO_ICMP), (libc::AF_INET6, DATAGRAM, libc::IPPROTO_ICMPV6)];
const LOCAL: [Socket; 3] =
    [(libc::AF_UNIX, STREAM, 0), (libc::AF_UNIX, DATAGRAM, 0), (libc::AF_UNIX, libc::SOCK_SEQPACKET, 0)];
/// Routes, socket diagnosis and generic netlink, as raw or datagram sockets (the kernel makes no difference).
const NETLINK: [Socket; 6] = [
    (libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE),
    (libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_SOCK_DIAG),
    (libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_GENERIC),
    (libc::AF_NETLINK, DATAGRAM, libc::NETLINK_ROUTE),
    (libc::AF_NETLINK, DATAGRAM, libc::NETLINK_SOCK_DIAG),
    (libc::AF_NETLINK, DATAGRAM, libc::NETLINK_GENERIC),
];

/// What any socket is used with; sending is apart, because of its flags.
const USE: [libc::c_long; 8] = [
    libc::SYS_connect,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
];

/// Adds what the declared classes need. Nothing is added for `none`: not even a socket pair. In a namespace of
/// its own a program gets ordinary sockets, which reach nobody; Unix sockets by path are not in it.
///
/// # Errors
/// A rule that seccompiler does not take.
pub fn allow(network: &Network, abi: u32, rules: &mut Rules) -> Result<(), BackendError> {
    let alone = *network == Network::Namespace;
    let declared = network.classes();
    if declared.is_empty() && !alone {
        return Ok(());
    }
    let mut sockets: Vec<Socket> = Vec::new();
    if alone {
        sockets.extend(TCP);
        sockets.extend(UDP);
        sockets.extend(NETLINK);
    }
    for class in declared {
        match class {
            NetworkClass::Netlink => sockets.extend(NETLINK),
            NetworkClass::Unix => sockets.extend(LOCAL),
            NetworkClass::Dns => {
                sockets.extend(UDP);
                if dns_has_tcp(abi) {
                    sockets.extend(TCP);
                }
            }
            NetworkClass::Icmp => {
                sockets.extend(ECHO);
                // ping asks the kernel for its source address with a UDP socket.
                sockets.extend(UDP);
            }
            NetworkClass::Connect(_) | NetworkClass::Bind(_) => sockets.extend(TCP),
        }
    }
    sockets.sort_unstable();
    sockets.dedup();
    for socket in sockets {
        rules.when(libc::SYS_socket, this_socket(socket)?);
    }
    if network.has_unix() {
        for socket in LOCAL {
            rules.when(libc::SYS_socketpair, this_socket(socket)?);
        }
    }
    for call in USE {
        rules.always(call);
    }
    rules.always(libc::SYS_setsockopt);
    // Netlink, UDP and echo sockets are bound before use; TCP ports that may be bound are Landlock's.
    if alone || declared.iter().any(|class| !matches!(class, NetworkClass::Connect(_))) {
        rules.always(libc::SYS_bind);
    }
    if alone || declared.iter().any(|class| matches!(class, NetworkClass::Bind(_))) {
        // listen(2) binds by itself to a free port where nothing was bound, which no Landlock rule sees.
        rules.always(libc::SYS_listen);
        rules.always(libc::SYS_accept);
        rules.always(libc::SYS_accept4);
    }
    // MSG_FASTOPEN connects while sending and walks around Landlock's port rules.
    for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
        rules.when(call, all_of([masked(flags, libc::MSG_FASTOPEN as u32, 0)?])?);
    }
    Ok(())
}

fn this_socket((family, kind, protocol): Socket) -> Result<SeccompRule, BackendError> {
    let flags = (libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) as u32;
    all_of([
        dword(0, SeccompCmpOp::Eq, family as u32)?,
        masked(1, !flags, kind as u32)?,
        dword(2, SeccompCmpOp::Eq, protocol as u32)?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dns_reaches_port_53_by_tcp_and_says_what_udp_reaches() {
        let network = Network::Classes(vec![NetworkClass::Dns, NetworkClass::Connect(vec![443, 53, 80])]);
        assert_eq!(connect_ports(&network), [53, 80, 443]);
        assert_eq!(describe(&network, 7), "dns (UDP to any host and port), connect:443,53,80");
        assert_eq!(describe(&network, 3), "dns (UDP to any host and port, no TCP), connect:443,53,80");
        assert_eq!(describe(&Network::None, 7), "none");
    }
}
