#![forbid(unsafe_code)]
//! Programs that are known by their names: those that run the text they are given, and those that start
//! other programs.

/// Programs that run the text they are given. A version or a suffix may follow: `python3.11`.
const INTERPRETERS: &[&str] = &[
    "ash",
    "awk",
    "bash",
    "busybox",
    "bun",
    "csh",
    "dash",
    "deno",
    "expect",
    "fish",
    "gawk",
    "guile",
    "java",
    "jshell",
    "ksh",
    "ld-linux",
    "ld-musl",
    "ld.so",
    "lua",
    "luajit",
    "mawk",
    "mksh",
    "nawk",
    "node",
    "nodejs",
    "original-awk",
    "perl",
    "php",
    "pwsh",
    "pypy",
    "python",
    "rbash",
    "rscript",
    "ruby",
    "sh",
    "tclsh",
    "tcsh",
    "toybox",
    "wish",
    "yash",
    "zsh",
];

/// Programs that exist to start another one.
const WRAPPERS: &[&str] = &[
    "capsh",
    "chpst",
    "chroot",
    "chrt",
    "doas",
    "env",
    "fakeroot",
    "firejail",
    "flock",
    "gosu",
    "ionice",
    "ltrace",
    "nice",
    "nohup",
    "nsenter",
    "parallel",
    "pkexec",
    "prlimit",
    "run-parts",
    "run0",
    "runcon",
    "runuser",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "stdbuf",
    "strace",
    "su",
    "su-exec",
    "sudo",
    "sudo-rs",
    "systemd-run",
    "taskset",
    "timeout",
    "unshare",
    "xargs",
];

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Whether a program runs the text that it is given, by the name of its file. A link under another name is
/// found when the file is looked at.
pub fn is_interpreter(path: &str) -> bool {
    INTERPRETERS.iter().any(|known| {
        file_name(path).strip_prefix(known).is_some_and(|rest| {
            rest.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-'))
                || rest.starts_with("-x86-64")
                || rest.starts_with("-aarch64")
                || rest.ends_with(".so.1")
        })
    })
}

/// Whether a program starts the program that its arguments name, by the name of its file. Under one-shot
/// exec it starts, and can start nothing.
pub fn is_wrapper(path: &str) -> bool {
    WRAPPERS.contains(&file_name(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_suffixes_do_not_hide_an_interpreter() {
        for path in
            ["/bin/sh", "/usr/bin/python3", "/usr/bin/python3.11", "/usr/bin/perl5.36", "/bin/busybox"]
        {
            assert!(is_interpreter(path), "{path}");
        }
        for path in ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-aarch64.so.1"] {
            assert!(is_interpreter(path), "{path}");
        }
        for path in
            ["/usr/bin/ls", "/usr/bin/shasum", "/usr/bin/nodeinfo", "/usr/bin/perldoc", "/usr/bin/journalctl"]
        {
            assert!(!is_interpreter(path), "{path}");
        }
    }

    #[test]
    fn a_wrapper_is_known_by_its_name() {
        assert!(is_wrapper("/usr/bin/env") && is_wrapper("/usr/bin/systemd-run"));
        assert!(!is_wrapper("/usr/bin/timedatectl"));
    }
}
