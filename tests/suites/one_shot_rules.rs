//! One-shot exec, taken apart: with every rule in force nothing executes a second program, and each rule that is
//! left out lets its attack through.
//!
//! The filters are the ones that the helper loads: they are copied from a program that it runs. The probe then
//! starts programs under these copies, as the child of a run does but without Landlock, and puts an exception
//! for one rule in front. All of it is tried with the guard page where `vm.mmap_min_addr` puts it on most
//! distributions, and where it is on others: the tests are `alone`, since they change that setting.

use gloveport_tests::{Helper, Scene, processes};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);
const LOWEST: &str = "/proc/sys/vm/mmap_min_addr";

/// `vm.mmap_min_addr`, put back at the end.
struct Lowest(String);

impl Lowest {
    fn set(value: &str) -> Self {
        let before = fs::read_to_string(LOWEST).expect("vm.mmap_min_addr");
        fs::write(LOWEST, value).expect("setting vm.mmap_min_addr");
        Self(before)
    }
}

impl Drop for Lowest {
    fn drop(&mut self) {
        let _ = fs::write(LOWEST, &self.0);
    }
}

/// The filters of the product for the present `vm.mmap_min_addr`, copied.
struct Copied {
    helper: Helper,
    directory: String,
}

impl Copied {
    fn take() -> Self {
        let scene = Scene::new();
        let directory = scene.root.join("filters").display().to_string();
        fs::create_dir(&directory).expect("making a directory");
        let second = fs::read(scene.probe()).expect("the probe");
        scene.program("second", second);
        let sleep = scene.probing("sleep", &["sleep", "20000"]);
        let helper = scene.helper(&[sleep]);
        let mut connection = helper.connect();
        let run = helper.call("sleep", &[]);
        connection.send(&gloveport_contract::packet::Request::Run(Box::new(run)));
        let uid = helper.scene.run.number;
        let mut pid = 0;
        processes::wait_until("the program runs", SOON, || {
            let sleeping = processes::of(uid).into_iter().find(|one| one.command.ends_with("sleep 20000"));
            pid = sleeping.map_or(0, |one| one.pid);
            pid != 0
        });
        let copied = Command::new(helper.scene.probe())
            .args(["copy-filters", &pid.to_string(), &directory])
            .output()
            .expect("starting the probe");
        assert_eq!(String::from_utf8_lossy(&copied.stdout), "ok\n");
        let ended = kill_process(Pid::from_raw(pid.cast_signed()).expect("a pid"), Signal::KILL);
        ended.expect("ending the program");
        connection.finish();
        Self { helper, directory }
    }

    /// Runs a program under the filters without one rule; what it printed and complained.
    fn run(&self, without: &str, argv: &[&str]) -> String {
        let uid = self.helper.scene.run.number.to_string();
        let output = Command::new(self.helper.scene.probe())
            .args(["confined", &self.directory, &uid, without])
            .args(argv)
            .stdin(Stdio::null())
            .current_dir("/")
            .output()
            .expect("starting the probe");
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).trim().to_owned()
    }

    /// The probe as the program. `SECOND` among the words is the path of the second program.
    fn probe(&self, without: &str, words: &[&str]) -> String {
        let (probe, second) = (self.helper.scene.probe(), self.second());
        let words = words.iter().map(|word| if *word == "SECOND" { second.as_str() } else { *word });
        let argv: Vec<&str> = std::iter::once(probe.as_str()).chain(words).collect();
        self.run(without, &argv)
    }

    /// A static program, which says where to look for its subcommands when it is started with none.
    fn second(&self) -> String {
        self.helper.scene.root.join("second").display().to_string()
    }
}

/// What the second program says.
const RAN: &str = "subcommands: see tests/probe/src";
/// What an attack prints that has memory at the guard page, though nothing was executed.
const MEMORY: &str = "errno EEXIST";

/// A rule, the attack that it stops, what that says with every rule, and what without this one.
type Row = (&'static str, &'static [&'static str], &'static str, &'static str);

const ROWS: &[Row] = &[
    ("execve", &["exec2", "SECOND"], "errno EPERM", RAN),
    // Any path at the descriptor of the executable, which is closed: an absolute one needs none.
    ("execveat", &["execveat-k", "SECOND"], "errno EPERM", RAN),
    ("execveat", &["execveat-file", "SECOND"], "errno EPERM", RAN),
    ("memfd_create", &["memfd-exec", "SECOND"], "errno EPERM", RAN),
    ("mmap", &["mmap-low", "SECOND"], "errno EPERM", RAN),
    ("mmap", &["mmap-low-once", "SECOND"], "errno EPERM", RAN),
    ("mmap", &["mmap-growsdown", "SECOND"], "errno EPERM", RAN),
    // A hint without MAP_FIXED, below what may be mapped: the kernel rounds it up to just there.
    ("mmap-address", &["mmap-hint", "SECOND"], "errno EPERM", RAN),
    ("mremap", &["mremap-low", "SECOND"], "errno EPERM", RAN),
    ("mremap", &["mremap-keep", "SECOND"], "errno EPERM", RAN),
    ("mremap", &["mremap-stack", "SECOND"], "errno EPERM", RAN),
    ("shmat", &["shmat-low", "SECOND"], "errno EPERM", RAN),
    #[cfg(target_arch = "x86_64")]
    ("arch_prctl", &["vdso-low", "SECOND"], "errno EPERM", MEMORY),
    ("address-space", &["fill-low", "SECOND"], "errno ENOMEM", RAN),
    ("stack", &["fill-low", "SECOND"], "errno ENOMEM", RAN),
    // Not ways to a second program, but to what one would be wanted for.
    ("personality", &["personality", "0x0040000"], "errno EPERM", "ok"),
    ("clone", &["clone-namespace"], "errno EPERM", "ok"),
    ("clone3", &["clone3"], "errno ENOSYS", "ok"),
    // On /dev/null: that the request reaches the device is what the rule prevents.
    ("ioctl", &["ioctl", "tiocsti"], "errno EPERM", "errno ENOTTY"),
    ("ioctl", &["ioctl", "tiocsti", "high"], "errno EPERM", "errno ENOTTY"),
];

/// Where the guard page is on most distributions.
const USUAL: &str = "65536";

/// Attacks that need the kernel to choose the lowest address itself. A kernel that is built with a floor of its
/// own (CONFIG_LSM_MMAP_MIN_ADDR) never chooses one below that, whatever vm.mmap_min_addr says: with a lower
/// guard page they get nowhere there, with the rule or without.
const HIDDEN_BELOW: [&str; 4] = ["mmap-growsdown", "mmap-hint", "mremap-stack", "fill-low"];

/// Rules that stop what no program without privilege can do today anyway: PR_SET_MM needs CAP_SYS_RESOURCE, and
/// remap_file_pages(2) moves nothing to another address. They are there in case that changes.
const IN_DEPTH: &[Row] = &[
    ("prctl", &["set-mm-low", "SECOND"], "errno EPERM", "errno EPERM"),
    ("remap_file_pages", &["remap-low", "SECOND"], "errno EPERM", "errno EINVAL"),
];

/// Each test takes the machine's attention, or changes a setting of it.
mod alone {
    use super::*;

    fn every_rule_at(lowest: &str) {
        let _lowest = Lowest::set(lowest);
        let copied = Copied::take();
        let mut wrong = Vec::new();
        for (rule, words, with, without) in ROWS.iter().chain(IN_DEPTH) {
            let said = [copied.probe("nothing", words), copied.probe(rule, words)];
            let hidden = lowest != USUAL && HIDDEN_BELOW.contains(&words[0]);
            if said[0] != *with || (said[1] != *without && !hidden) {
                wrong.push(format!("{rule} {words:?}: {said:?}, not {:?}", [with, without]));
            }
        }
        assert!(wrong.is_empty(), "at {lowest}:\n{}", wrong.join("\n"));
    }

    #[test]
    fn each_rule_that_is_left_out_lets_its_attack_through_with_the_usual_guard_page() {
        every_rule_at(USUAL);
    }

    #[test]
    fn each_rule_that_is_left_out_lets_its_attack_through_with_a_lower_guard_page() {
        every_rule_at("4096");
    }

    #[test]
    fn another_process_of_the_same_user_is_out_of_reach_by_its_number() {
        let copied = Copied::take();
        let mut victim = Command::new("/usr/bin/sleep");
        let uid = copied.helper.scene.run.number;
        victim.uid(uid).gid(uid);
        let mut victim = victim.arg("60").spawn().expect("starting sleep");
        let pid = victim.id().to_string();
        for (rule, attack) in [("prlimit64", "prlimit"), ("sched_setaffinity", "affinity")] {
            assert_eq!(copied.probe("nothing", &[attack, &pid]), "errno EPERM", "{attack}");
            assert_eq!(copied.probe(rule, &[attack, &pid]), "ok", "{attack}");
        }
        let _ = victim.kill();
        let _ = victim.wait();
    }

    /// Programs that can be told to start another one, and how each is asked to say who it is.
    fn launchers(second: &str) -> Vec<Vec<String>> {
        let python =
            |code: &str| vec!["/usr/bin/python3".into(), "-IBSc".into(), code.replace("SECOND", second)];
        let perl = |code: &str| vec!["/usr/bin/perl".into(), "-e".into(), code.replace("SECOND", second)];
        let bash = |code: &str| vec!["/usr/bin/bash".into(), "-c".into(), code.replace("SECOND", second)];
        let find = |how: &[&str]| {
            let words = ["/usr/bin/find", "/etc/hostname"]
                .iter()
                .chain(how)
                .map(|word| word.replace("SECOND", second));
            words.collect::<Vec<String>>()
        };
        // A page at the lowest address by the means of the language, then the exec that the filter knows.
        let by_page = "
import ctypes, os
c = ctypes.CDLL(None, use_errno=True); c.syscall.restype = ctypes.c_long
low = int(open('/proc/sys/vm/mmap_min_addr').read()); low = max(low, 4096)
for at, flags in ((low, 0x32), (low, 0x100022), (4096, 0x22), (low + 4096, 0x132)):
    c.syscall(ctypes.c_long(9), ctypes.c_ulong(at), ctypes.c_ulong(4096), 3, flags, -1, ctypes.c_ulong(0))
r, w = os.pipe(); os.write(w, b'SECOND\\0')
c.syscall(ctypes.c_long(0), r, ctypes.c_ulong(low), ctypes.c_ulong(200))
argv = (ctypes.c_char_p * 2)(b'second', None); env = (ctypes.c_char_p * 1)(None)
c.syscall(ctypes.c_long(322), 256, ctypes.c_ulong(low), argv, env, 0x1000)
print('refused', ctypes.get_errno())";
        vec![
            python("import os; os.execv('SECOND', ['second'])"),
            python("import os; os.execve(os.open('SECOND', os.O_RDONLY), ['second'], {})"),
            python("import os; os.posix_spawn('SECOND', ['second'], {})"),
            python("import os; os.system('SECOND')"),
            python("import os; os.fork() or os.execv('SECOND', ['second']); os.wait()"),
            python("import subprocess; subprocess.run(['SECOND'])"),
            python(
                "import threading, os; t = threading.Thread(target=os.execv, args=('SECOND', ['second'])); t.start(); t.join()",
            ),
            python(
                "import os; f = os.memfd_create('x'); os.write(f, open('SECOND', 'rb').read()); os.execve(f, ['x'], {})",
            ),
            python(by_page),
            perl("exec('SECOND')"),
            perl("print `SECOND`"),
            perl("system('SECOND')"),
            perl("open(my $f, '-|', 'SECOND') or die; print <$f>"),
            perl("syscall(59, 'SECOND', 0, 0)"),
            perl("syscall(322, 256, 'SECOND', 0, 0, 0x1000)"),
            bash("exec SECOND"),
            bash("SECOND"),
            bash("(SECOND)"),
            bash("echo $(SECOND)"),
            bash("SECOND | cat"),
            bash("command SECOND; exec -a x SECOND"),
            find(&["-exec", "SECOND", ";"]),
            find(&["-exec", "SECOND", "{}", "+"]),
            find(&["-execdir", "SECOND", ";"]),
        ]
    }

    #[test]
    fn no_program_that_starts_others_can_start_one() {
        for lowest in [USUAL, "4096"] {
            let _lowest = Lowest::set(lowest);
            let copied = Copied::take();
            for argv in launchers(&copied.second()) {
                let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
                let said = copied.run("nothing", &argv);
                assert!(!said.contains(RAN), "at {lowest}, {argv:?}: {said}");
            }
            // The programs themselves work, and what they would start as well.
            for argv in [
                vec!["/usr/bin/python3", "-ISc", "print('first')"],
                vec!["/usr/bin/perl", "-e", "print 'first'"],
                vec!["/usr/bin/bash", "-c", "echo first"],
                vec!["/usr/bin/find", "/etc/hostname", "-printf", "first"],
            ] {
                assert_eq!(copied.run("nothing", &argv), "first", "{argv:?}");
            }
            let second = copied.second();
            for argv in [
                vec![
                    "/usr/bin/python3",
                    "-ISc",
                    "import os, sys; os.execv(sys.argv[1], ['second'])",
                    &second,
                ],
                vec!["/usr/bin/perl", "-e", "exec(@ARGV)", &second],
                vec!["/usr/bin/bash", "-c", "$0", &second],
                vec!["/usr/bin/find", "/etc/hostname", "-exec", &second, ";"],
            ] {
                assert_eq!(copied.run("execve", &argv), RAN, "{argv:?}");
            }
        }
    }
}
