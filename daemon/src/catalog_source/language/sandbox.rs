#![forbid(unsafe_code)]
//! The keys of a sandbox and of the resource limits.

use super::Absent::{Default, Nothing, Required};
use super::Effect::{Narrows, Widens};
use super::{Block, Shape, key};

pub(super) static SANDBOX: Block = Block {
    id: "sandbox",
    title: "Sandbox",
    about: "The value of `sandbox`. What is not named here, the program cannot do: no other file is \
            written, no socket is opened, and after the program has started, no second program starts in \
            its tree.",
    keys: &[
        key(
            "base",
            Shape::Word(&[
                ("minimal", "loader and libraries only"),
                ("system", "also `/usr/share`, `/etc`, `/proc`, `/sys` and a few devices"),
            ]),
            Default("system"),
            Widens,
            "What may be read without being named. `run_as: root` always has `minimal`.",
        ),
        key(
            "read",
            Shape::List(&Shape::OptionalPath),
            Nothing,
            Widens,
            "Files and trees to read. `\"?/path\"` may be absent on a host; any other missing path makes \
             the action unsupported there.",
        ),
        key(
            "write",
            Shape::List(&Shape::OptionalPath),
            Nothing,
            Widens,
            "Files and trees to read and write: make, change, truncate and remove files. Nothing below is \
             ever executed.",
        ),
        key(
            "list",
            Shape::Word(&[
                ("declared", "only what may be read"),
                ("everywhere", "every directory that the account may list"),
            ]),
            Default("everywhere"),
            Widens,
            "Which directories may be listed.",
        ),
        key(
            "exec",
            Shape::List(&Shape::Path),
            Nothing,
            Widens,
            "Programs that the program may start. Without it none at all (one-shot exec); with it \
             Landlock's execute right holds, with its limits.",
        ),
        key(
            "network",
            Shape::Either(&[
                Shape::Word(&[
                    ("none", "no socket at all"),
                    (
                        "namespace",
                        "an empty network of its own; the packaged unit does not grant what that takes",
                    ),
                ]),
                Shape::List(&Shape::Either(&[
                    Shape::Word(&[
                        ("netlink", "routes, socket diagnosis, generic netlink"),
                        ("unix", "AF_UNIX; which socket is decided by its file mode"),
                        ("dns", "UDP to any host and port, TCP to port 53 (none below Linux 6.7)"),
                        ("icmp", "ICMP echo, and the UDP that ping probes with"),
                    ]),
                    Shape::Block(&CONNECT),
                    Shape::Block(&BIND),
                ])),
            ]),
            Default("none"),
            Widens,
            "`none`, or a list of classes of sockets, such as `[dns, {connect: [443]}]`.",
        ),
        key(
            "syscalls",
            Shape::List(&Shape::Word(&[
                ("handles", "`name_to_handle_at`, never `open_by_handle_at`"),
                ("numa", "memory policy"),
                ("timers", "POSIX timers"),
            ])),
            Nothing,
            Widens,
            "Named groups of further system calls.",
        ),
        key(
            "bounding",
            Shape::List(&Shape::Word(&[("net_raw", "for Debian's `ping`")])),
            Nothing,
            Widens,
            "Capabilities left in the bounding set only: a program with file capabilities starts, and \
             gains nothing.",
        ),
        key(
            "isolate_pids",
            Shape::Boolean,
            Default("false"),
            Narrows,
            "A PID namespace of its own: the program is its process 1 and can signal nobody outside; when it \
             ends, everything that it started ends. `/proc` still shows the host's processes. The packaged \
             unit does not grant what it takes.",
        ),
        key(
            "private_tmp",
            Shape::Size,
            Default("0"),
            Widens,
            "A temporary directory of at most that size (4 KiB to 1 GiB) for all steps of the run, in memory and gone with \
             the run. Programs find it by TMPDIR; nothing in it is executed, and no other run sees it. Without it \
             there is none, and `/tmp` is closed. Not for uid 0.",
        ),
        key(
            "may_lack",
            Shape::List(&Shape::Word(&[
                ("landlock", "the file system rules"),
                ("no_write", "nothing undeclared is written or truncated"),
                ("connect_ports", "TCP ports are held by the kernel"),
                ("abstract_sockets", "no abstract Unix socket outside the run"),
                ("signals", "no signal to a process outside the run"),
                ("ioctl", "no device ioctl"),
                ("one_shot_exec", "after the program has started, no second program"),
                ("cgroup", "a cgroup of its own"),
            ])),
            Nothing,
            Widens,
            "Promises that the run may go without, by name, where the kernel cannot keep them. Any other \
             is kept, or the run is refused.",
        ),
    ],
};

static CONNECT: Block = Block {
    id: "network_connect",
    title: "Connect",
    about: "A class of `network`: TCP to these ports of any host.",
    keys: &[key("connect", Shape::List(&Shape::Integer(1, 65535)), Required, Widens, "The ports.")],
};

static BIND: Block = Block {
    id: "network_bind",
    title: "Bind",
    about: "A class of `network`: TCP listeners on these ports, and what `connect` has.",
    keys: &[key("bind", Shape::List(&Shape::Integer(1, 65535)), Required, Widens, "The ports.")],
};

pub(super) static LIMITS: Block = Block {
    id: "limits",
    title: "Limits",
    about: "The value of `limits`.",
    keys: &[
        key(
            "processes",
            Shape::Integer(1, 4096),
            Default("128"),
            Widens,
            "Processes and threads of `run_as`, over all runs.",
        ),
        key(
            "memory",
            Shape::Size,
            Default("1GiB"),
            Widens,
            "Memory where a cgroup is delegated; where none is, address space of each process, and 4 GiB \
             where nothing is said.",
        ),
        key("file_size", Shape::Size, Default("64MiB"), Widens, "The largest file written, up to 64GiB."),
        key("open_files", Shape::Integer(16, 1000), Default("256"), Widens, "Descriptors of a process."),
        key("cpu", Shape::Time, Nothing, Widens, "Processor time of one process, in whole seconds."),
        key(
            "cpu_percent",
            Shape::Integer(1, 100_000),
            Default("100"),
            Widens,
            "Processors that the whole run may use at once, in hundredths of one, where a cgroup with this \
             controller is delegated: 100 is one, 50 half of one.",
        ),
    ],
};
