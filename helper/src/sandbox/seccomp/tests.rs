#![forbid(unsafe_code)]
//! What the filters say, by running them: a classic BPF program is a few instructions.

use super::*;
use gloveport_contract::catalog::NetworkClass;
use seccompiler::sock_filter;

const PAGE: GuardPage = GuardPage { address: 65536, size: 4096 };
const EXECUTABLE: u32 = 256;
const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;

/// A system call as a filter sees it: struct seccomp_data.
fn data(call: libc::c_long, args: &[u64]) -> Vec<u8> {
    let arch: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
    let mut data = u32::try_from(call).unwrap().to_le_bytes().to_vec();
    data.extend(arch.to_le_bytes());
    data.extend(0_u64.to_le_bytes());
    for at in 0..6 {
        data.extend(args.get(at).copied().unwrap_or(0).to_le_bytes());
    }
    data
}

fn interpret(program: &[sock_filter], data: &[u8]) -> u32 {
    let (mut at, mut a) = (0, 0_u32);
    loop {
        let i = &program[at];
        at += 1;
        let jump = |taken: bool| usize::from(if taken { i.jt } else { i.jf });
        match i.code {
            0x20 => a = u32::from_le_bytes(data[i.k as usize..i.k as usize + 4].try_into().unwrap()),
            0x54 => a &= i.k,
            0x05 => at += i.k as usize,
            0x15 => at += jump(a == i.k),
            0x25 => at += jump(a > i.k),
            0x35 => at += jump(a >= i.k),
            0x06 => return i.k,
            other => panic!("instruction {other:#x}"),
        }
    }
}

fn key() -> FilterKey {
    FilterKey {
        network: Network::None,
        groups: Vec::new(),
        children: false,
        writes: false,
        executable: EXECUTABLE,
    }
}

fn answer(filter: &BpfProgram, call: libc::c_long, args: &[u64]) -> u32 {
    interpret(filter, &data(call, args))
}

fn passes(filter: &BpfProgram, call: libc::c_long, args: &[u64]) -> bool {
    answer(filter, call, args) == ALLOW
}

fn filters(key: &FilterKey, abi: u32) -> BpfProgram {
    build(key, abi, PAGE).unwrap()
}

fn with(classes: &[NetworkClass]) -> BpfProgram {
    filters(&FilterKey { network: Network::Classes(classes.to_vec()), ..key() }, 7)
}

#[test]
fn only_the_helpers_own_exec_passes() {
    let f = filters(&key(), 7);
    let page = PAGE.address as u64;
    let flags = libc::AT_EMPTY_PATH as u64;
    assert!(passes(&f, libc::SYS_execveat, &[256, page, 1, 2, flags]));
    for args in [
        [255, page, 0, 0, flags],
        [256, page + 1, 0, 0, flags],
        [256, page | 1 << 32, 0, 0, flags],
        [256, page, 0, 0, 0],
        [256, page, 0, 0, flags | 0x10000],
    ] {
        assert!(!passes(&f, libc::SYS_execveat, &args), "{args:?}");
    }
    assert!(!passes(&f, libc::SYS_execve, &[page]));
    let children = filters(&FilterKey { children: true, ..key() }, 7);
    assert!(passes(&children, libc::SYS_execve, &[page]));
    assert!(!passes(&children, libc::SYS_execveat, &[3, page, 0, 0, flags]));
}

#[test]
fn nobody_gets_memory_at_the_guard_page() {
    let f = filters(&key(), 7);
    let private = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
    let fixed = libc::MAP_FIXED as u64;
    let no_replace = libc::MAP_FIXED_NOREPLACE as u64;
    let grows = libc::MAP_GROWSDOWN as u64;
    let map = |address: u64, flags: u64| passes(&f, libc::SYS_mmap, &[address, 4096, 3, flags]);
    assert!(map(0, private));
    assert!(map(0x40_0000, private | fixed));
    assert!(map(69632, private | fixed));
    for (address, flags) in [
        (0, private | fixed),
        (0, private | no_replace),
        (0, private | grows),
        (1, private),
        (4096, private),
        (65535, private),
        (65536, private),
        (65536, private | fixed),
        (69631, private),
        (0x40_0000, private | grows),
        (1 << 56, private),
        (u64::MAX, private),
    ] {
        assert!(!map(address, flags), "{address:#x} {flags:#x}");
    }
    let remap = |flags: i32| passes(&f, libc::SYS_mremap, &[0x40_0000, 4096, 8192, flags as u64]);
    assert!(remap(0) && remap(libc::MREMAP_MAYMOVE));
    assert!(!remap(libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) && !remap(libc::MREMAP_MAYMOVE | 4));
    assert!(!passes(&f, libc::SYS_shmat, &[]) && !passes(&f, libc::SYS_remap_file_pages, &[]));
    assert!(!passes(&f, libc::SYS_prctl, &[libc::PR_SET_MM as u64]));
    #[cfg(target_arch = "x86_64")]
    for (code, expected) in [(0x1002, true), (0x2001, false), (0x2003, false), (0x1005, false)] {
        assert_eq!(passes(&f, libc::SYS_arch_prctl, &[code]), expected, "{code:#x}");
    }
}

#[test]
fn a_process_says_something_about_itself_alone() {
    let f = filters(&key(), 7);
    assert!(passes(&f, libc::SYS_prlimit64, &[0, 7]));
    assert!(!passes(&f, libc::SYS_prlimit64, &[1, 7]));
    assert!(passes(&f, libc::SYS_sched_setaffinity, &[0]));
    assert!(!passes(&f, libc::SYS_sched_setaffinity, &[9]));
    assert!(passes(&f, libc::SYS_setpriority, &[0, 0, 19]));
    assert!(!passes(&f, libc::SYS_setpriority, &[0, 9, 19]));
    assert!(!passes(&f, libc::SYS_setpriority, &[2, 0, 19]));
    assert!(passes(&f, libc::SYS_personality, &[0xffff_ffff]));
    assert!(!passes(&f, libc::SYS_personality, &[0x40000]));
}

#[test]
fn no_new_namespace_and_no_clone3() {
    let f = filters(&key(), 7);
    let thread = (libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND) as u64;
    assert!(passes(&f, libc::SYS_clone, &[thread]));
    for flag in [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ] {
        assert!(!passes(&f, libc::SYS_clone, &[thread | flag as u64]), "{flag:#x}");
    }
    assert_eq!(answer(&f, libc::SYS_clone3, &[]), ERRNO | libc::ENOSYS as u32);
    assert!(!passes(&f, libc::SYS_unshare, &[]) && !passes(&f, libc::SYS_setns, &[]));
}

#[test]
fn the_upper_half_of_a_request_counts_for_nothing() {
    let f = filters(&key(), 7);
    let ioctl = |request: u64| passes(&f, libc::SYS_ioctl, &[0, request]);
    assert!(ioctl(libc::TCGETS));
    assert!(!ioctl(libc::TIOCSTI) && !ioctl(libc::TIOCSTI | 1 << 32) && !ioctl(libc::TIOCLINUX));
}

#[test]
fn without_a_class_there_is_no_socket_of_any_kind() {
    let f = filters(&key(), 7);
    for call in [
        libc::SYS_socket,
        libc::SYS_socketpair,
        libc::SYS_connect,
        libc::SYS_bind,
        libc::SYS_listen,
        libc::SYS_sendto,
        libc::SYS_sendmsg,
    ] {
        assert!(!passes(&f, call, &[libc::AF_UNIX as u64, libc::SOCK_STREAM as u64]), "{call}");
    }
}

#[test]
fn in_a_namespace_of_its_own_a_program_has_ordinary_sockets_and_none_of_the_hosts_services() {
    let f = filters(&FilterKey { network: Network::Namespace, ..key() }, 7);
    let socket = |family: i32, kind: i32, protocol: i32| {
        passes(&f, libc::SYS_socket, &[family as u64, kind as u64, protocol as u64])
    };
    assert!(socket(libc::AF_INET, libc::SOCK_STREAM, 0));
    assert!(socket(libc::AF_INET6, libc::SOCK_DGRAM, 0));
    assert!(passes(&f, libc::SYS_bind, &[]) && passes(&f, libc::SYS_listen, &[]));
    assert!(!socket(libc::AF_UNIX, libc::SOCK_STREAM, 0));
    assert!(!socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP));
    assert!(!socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0));
}

#[test]
fn each_class_lets_its_own_sockets_through_and_no_other() {
    use NetworkClass::{Bind, Connect, Dns, Icmp, Netlink, Unix};
    const FLAGS: i32 = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let all = [
        ("tcp", libc::AF_INET, libc::SOCK_STREAM, 0),
        ("tcp6", libc::AF_INET6, libc::SOCK_STREAM, libc::IPPROTO_TCP),
        ("mptcp", libc::AF_INET, libc::SOCK_STREAM, 262),
        ("udp", libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_UDP),
        ("ping", libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_ICMP),
        ("ping6", libc::AF_INET6, libc::SOCK_DGRAM, libc::IPPROTO_ICMPV6),
        ("raw", libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
        ("packet", libc::AF_PACKET, libc::SOCK_RAW, 0),
        ("vsock", libc::AF_VSOCK, libc::SOCK_STREAM, 0),
        ("unix", libc::AF_UNIX, libc::SOCK_STREAM, 0),
        ("route", libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE),
        ("audit", libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_AUDIT),
    ];
    for (class, expected) in [
        (Netlink, vec!["route"]),
        (Unix, vec!["unix"]),
        (Dns, vec!["tcp", "tcp6", "udp"]),
        (Icmp, vec!["udp", "ping", "ping6"]),
        (Connect(vec![443]), vec!["tcp", "tcp6"]),
        (Bind(vec![8080]), vec!["tcp", "tcp6"]),
    ] {
        let f = with(std::slice::from_ref(&class));
        for (name, family, kind, protocol) in all {
            for flags in [0, FLAGS] {
                let args = [family as u64, (kind | flags) as u64, protocol as u64];
                assert_eq!(passes(&f, libc::SYS_socket, &args), expected.contains(&name), "{class:?} {name}");
            }
        }
        assert_eq!(passes(&f, libc::SYS_listen, &[]), matches!(class, Bind(_)), "{class:?}");
        assert_eq!(passes(&f, libc::SYS_bind, &[]), !matches!(class, Connect(_)), "{class:?}");
    }
}

#[test]
fn fast_open_does_not_walk_around_a_port_rule() {
    let f = with(&[NetworkClass::Connect(vec![443])]);
    let fast = libc::MSG_FASTOPEN as u64;
    for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
        let mut args = [0; 6];
        assert!(passes(&f, call, &args));
        args[flags] = fast | libc::MSG_NOSIGNAL as u64;
        assert!(!passes(&f, call, &args));
    }
}

#[test]
fn without_a_scope_for_signals_a_process_signals_itself_and_its_group_alone() {
    let program = own_signals(Pid::from_raw(1234)).unwrap();
    let passes = |call, args: &[u64]| interpret(&program, &data(call, args)) == ALLOW;
    // abort(3) and raise(3), and a shell that ends its own group.
    assert!(passes(libc::SYS_tgkill, &[1234, 1235, 6]));
    assert!(passes(libc::SYS_tkill, &[1234, 6]));
    assert!(passes(libc::SYS_kill, &[1234, 15]));
    assert!(passes(libc::SYS_kill, &[0, 15]));
    for stranger in [1, 1235, u64::from(u32::MAX), u64::from(-1235_i32 as u32)] {
        for call in [
            libc::SYS_kill,
            libc::SYS_tkill,
            libc::SYS_tgkill,
            libc::SYS_rt_sigqueueinfo,
            libc::SYS_rt_tgsigqueueinfo,
        ] {
            assert!(!passes(call, &[stranger, stranger, 9]), "{call} {stranger}");
        }
    }
    assert!(!passes(libc::SYS_pidfd_send_signal, &[3, 9]));
    // SIGIO, or any signal that F_SETSIG names, to somebody else.
    assert!(!passes(libc::SYS_fcntl, &[0, libc::F_SETOWN as u64, 1]));
    assert!(!passes(libc::SYS_fcntl, &[0, F_SETOWN_EX as u64, 1]));
    assert!(passes(libc::SYS_fcntl, &[0, libc::F_GETFL as u64]));
    assert!(!passes(libc::SYS_ioctl, &[0, 0x8901]));
    assert!(passes(libc::SYS_ioctl, &[0, libc::TCGETS]));
}

#[test]
fn under_that_filter_a_process_still_aborts_and_its_parent_is_out_of_reach() {
    use crate::sys::process;
    use nix::sys::signal::{Signal, kill, raise};
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, getppid};
    let child = match process::fork().unwrap() {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            let own = own_signals(Pid::this()).unwrap();
            let filtered = seccompiler::apply_filter(&own).is_ok();
            if filtered && kill(getppid(), None) == Err(nix::errno::Errno::EPERM) {
                let _ = raise(Signal::SIGABRT);
            }
            process::exit(1)
        }
    };
    assert!(matches!(waitpid(child, None), Ok(WaitStatus::Signaled(_, Signal::SIGABRT, _))));
}

#[test]
fn below_abi_4_names_are_resolved_by_udp_alone() {
    let f = filters(&FilterKey { network: Network::Classes(vec![NetworkClass::Dns]), ..key() }, 3);
    let socket = |kind: i32| passes(&f, libc::SYS_socket, &[libc::AF_INET as u64, kind as u64, 0]);
    assert!(socket(libc::SOCK_DGRAM) && !socket(libc::SOCK_STREAM));
}

#[test]
fn below_abi_3_nothing_is_truncated_without_the_right_to_write() {
    for abi in [0, 1, 2] {
        let f = filters(&key(), abi);
        let open = |flags: i32| passes(&f, libc::SYS_openat, &[0, 0, flags as u64]);
        assert!(open(libc::O_RDONLY | libc::O_CLOEXEC));
        assert!(open(libc::O_WRONLY | libc::O_TRUNC | libc::O_CREAT) && open(libc::O_RDWR | libc::O_TRUNC));
        assert!(!open(libc::O_RDONLY | libc::O_TRUNC) && !open(libc::O_ACCMODE | libc::O_TRUNC));
        assert!(!passes(&f, libc::SYS_truncate, &[]));
        assert_eq!(answer(&f, libc::SYS_openat2, &[]), ERRNO | libc::ENOSYS as u32);
        assert!(
            !passes(&f, libc::SYS_ioctl, &[0, 0x1234]) && passes(&f, libc::SYS_ioctl, &[0, libc::TCGETS])
        );
    }
    let f = filters(&key(), 3);
    assert!(passes(&f, libc::SYS_openat, &[0, 0, libc::O_TRUNC as u64]));
    assert!(passes(&f, libc::SYS_truncate, &[]) && passes(&f, libc::SYS_openat2, &[]));
}

#[test]
fn who_may_write_nothing_may_not_change_modes_either() {
    assert!(!passes(&filters(&key(), 7), libc::SYS_fchmodat, &[]));
    assert!(passes(&filters(&FilterKey { writes: true, ..key() }, 7), libc::SYS_fchmodat, &[]));
}

#[test]
fn what_no_program_ever_gets() {
    let everything = FilterKey {
        network: Network::Classes(vec![
            NetworkClass::Netlink,
            NetworkClass::Unix,
            NetworkClass::Dns,
            NetworkClass::Icmp,
            NetworkClass::Connect(vec![1]),
            NetworkClass::Bind(vec![1]),
        ]),
        groups: vec![SyscallGroup::Handles, SyscallGroup::Numa, SyscallGroup::Timers],
        children: true,
        writes: true,
        executable: EXECUTABLE,
    };
    let f = filters(&everything, 7);
    for call in [
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_open_tree,
        libc::SYS_move_mount,
        libc::SYS_fsopen,
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_pidfd_getfd,
        libc::SYS_kcmp,
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        libc::SYS_memfd_create,
        libc::SYS_open_by_handle_at,
        libc::SYS_seccomp,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_kexec_load,
        libc::SYS_swapon,
        libc::SYS_reboot,
        libc::SYS_sethostname,
        libc::SYS_settimeofday,
        libc::SYS_clock_settime,
        libc::SYS_syslog,
        libc::SYS_acct,
        libc::SYS_quotactl,
        libc::SYS_mq_open,
        libc::SYS_ioprio_set,
    ] {
        assert!(!passes(&f, call, &[0, 0, 0, 0, 0, 0]), "{call}");
    }
}

#[test]
fn another_architecture_is_killed() {
    let f = filters(&key(), 7);
    let mut foreign = data(libc::SYS_getpid, &[]);
    foreign[4..8].copy_from_slice(&0x4000_0003_u32.to_le_bytes());
    assert_eq!(interpret(&f, &foreign), 0x8000_0000);
}

/// The rules as seccompiler compiles them itself: an allow-list, and a program in front of it for ENOSYS.
fn unpacked(key: &FilterKey, abi: u32) -> [BpfProgram; 2] {
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let error = |number: i32| SeccompAction::Errno(number as u32);
    let none = absent(abi).iter().map(|call| (*call, Vec::new())).collect();
    let mut all = rules(key, abi, PAGE).unwrap();
    // The allow-list is asked first, and of two errors the kernel takes its.
    absent(abi).iter().for_each(|call| all.always(*call));
    [
        SeccompFilter::new(none, SeccompAction::Allow, error(libc::ENOSYS), arch),
        SeccompFilter::new(all.into_map(), error(libc::EPERM), SeccompAction::Allow, arch),
    ]
    .map(|filter| filter.unwrap().try_into().unwrap())
}

/// Several programs, as the kernel combines them: the last one loaded is asked first, and an earlier one
/// counts only with a stricter kind of answer.
fn combined([absent, allowed]: &[BpfProgram; 2], data: &[u8]) -> u32 {
    const KIND: u32 = 0xffff_0000;
    let (absent, allowed) = (interpret(absent, data), interpret(allowed, data));
    if absent & KIND < allowed & KIND { absent } else { allowed }
}

#[test]
fn packed_they_say_what_they_say_one_number_after_the_other() {
    use NetworkClass::{Bind, Connect, Dns, Icmp, Netlink, Unix};
    let classes = [vec![], vec![Netlink], vec![Unix, Icmp], vec![Dns, Connect(vec![443]), Bind(vec![80])]];
    // Values about which some rule asks, and their neighbours.
    let mut values: Vec<u64> =
        vec![0, 1, 2, 3, 9, 16, 17, 58, u64::MAX, u64::from(u32::MAX), 1 << 32, 1 << 56];
    for near in
        [256, 0x1000, 0x1002, 0x5401, 0x5412, 0x541c, 0x8_0000, 0x7e02_0000, 0x2000_0000, 65536, 69632]
    {
        values.extend([near - 1, near, near + 1]);
    }
    let mut seed = 1_u64;
    let mut any = |of: &[u64]| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        of[usize::try_from(seed >> 33).unwrap() % of.len()]
    };
    for (abi, classes) in [0, 2, 4, 7].into_iter().flat_map(|abi| classes.iter().map(move |c| (abi, c))) {
        let network = if classes.is_empty() { Network::None } else { Network::Classes(classes.clone()) };
        let key = FilterKey { network, writes: abi > 4, children: abi == 4, ..key() };
        let (packed, unpacked) = (filters(&key, abi), unpacked(&key, abi));
        let numbers = (0..600).chain([1000, 0x4000_0000, 0x4000_0001, 0x7fff_ffff]);
        for call in numbers {
            for _ in 0..64 {
                let args = [(); 6].map(|()| any(&values));
                let data = data(call, &args);
                assert_eq!(interpret(&packed, &data), combined(&unpacked, &data), "{call} {args:x?} {key:?}");
            }
        }
    }
}

#[test]
fn the_filters_stay_small() {
    // What loading costs grows with them, and loading is a good part of a short run.
    let plain = filters(&key(), 7).len();
    assert!(plain < 440, "{plain}");
    let web = with(&[NetworkClass::Dns, NetworkClass::Connect(vec![443])]).len();
    assert!(web < 600, "{web}");
}
