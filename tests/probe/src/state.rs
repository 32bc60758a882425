//! What the program was given, as JSON.

use crate::raw;
use serde_json::{Map, Value, json};
use std::fs;

/// Prints it; the exit code.
pub fn inspect(subcommand: &str, args: &[&str]) -> Option<i32> {
    let value = match subcommand {
        "state" => state(),
        // argv WORD…: the words as bytes in hexadecimal, so that none is lost or repaired.
        "argv" => json!(argv()),
        "environment-of-self" => environment(),
        // cat FILE: a file, as text.
        "cat" => match fs::read(crate::text(args, 0)) {
            Ok(bytes) => {
                print!("{}", String::from_utf8_lossy(&bytes));
                println!();
                return Some(0);
            }
            Err(error) => {
                println!("errno {}", raw::name(error.raw_os_error().unwrap_or(0)));
                return Some(1);
            }
        },
        _ => return None,
    };
    println!("{value:#}");
    Some(0)
}

fn argv() -> Vec<String> {
    use std::os::unix::ffi::OsStrExt;
    std::env::args_os()
        .map(|word| word.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect())
        .collect()
}

fn state() -> Value {
    // First of all: looking at them makes one more.
    let descriptors = descriptors();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let found = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        found.map(|value| value.split_whitespace().collect::<Vec<_>>().join(" ")).unwrap_or_default()
    };
    json!({
        "argv": std::env::args().skip(1).collect::<Vec<_>>(),
        "uids": field("Uid"),
        "gids": field("Gid"),
        "groups": field("Groups"),
        "capabilities": {
            "inheritable": field("CapInh"),
            "permitted": field("CapPrm"),
            "effective": field("CapEff"),
            "bounding": field("CapBnd"),
            "ambient": field("CapAmb"),
        },
        "securebits": number(libc::SYS_prctl, &[libc::PR_GET_SECUREBITS as usize]),
        "no_new_privs": field("NoNewPrivs"),
        "seccomp": field("Seccomp"),
        "seccomp_filters": field("Seccomp_filters"),
        "descriptors": descriptors,
        "cwd": std::env::current_dir().unwrap_or_default(),
        "environment": environment(),
        "umask": field("Umask"),
        "rlimits": rlimits(),
        "signals": {
            "blocked": field("SigBlk"),
            "ignored": field("SigIgn"),
            "caught": field("SigCgt"),
        },
        "session": session(),
        "oom_score_adj": first_line("/proc/self/oom_score_adj"),
        "coredump_filter": first_line("/proc/self/coredump_filter"),
        "personality": first_line("/proc/self/personality"),
        "keyrings": keyrings(),
        "dumpable": number(libc::SYS_prctl, &[libc::PR_GET_DUMPABLE as usize]),
    })
}

/// What a call returned, or its errno by name.
fn number(call: libc::c_long, args: &[usize]) -> Value {
    match raw::call(call, args) {
        Ok(value) => json!(value),
        Err(errno) => json!(raw::name(errno)),
    }
}

fn first_line(path: &str) -> Value {
    match fs::read_to_string(path) {
        Ok(text) => json!(text.lines().next().unwrap_or_default()),
        Err(error) => json!(raw::name(error.raw_os_error().unwrap_or(0))),
    }
}

fn environment() -> Value {
    let entries = std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), json!(value.to_string_lossy())));
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    Value::Object(entries.into_iter().collect())
}

/// Every open descriptor but the one that the list is read with: what it is and how it was opened.
fn descriptors() -> Value {
    let mut found = Map::new();
    let numbers: Vec<usize> = fs::read_dir("/proc/self/fd")
        .map(|entries| entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect())
        .unwrap_or_default();
    for fd in numbers {
        let Ok(target) = fs::read_link(format!("/proc/self/fd/{fd}")) else { continue };
        let target = target.to_string_lossy();
        // `pipe:[12345]`: the number differs in each run.
        let kind = target.split(":[").next().unwrap_or_default();
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap_or_default();
        let flags = i32::from_str_radix(flags.trim(), 8).unwrap_or(0);
        let mode = match flags & libc::O_ACCMODE {
            libc::O_RDONLY => "read",
            libc::O_WRONLY => "write",
            _ => "read and write",
        };
        found.insert(fd.to_string(), json!(format!("{kind}, {mode}")));
    }
    Value::Object(found)
}

fn rlimits() -> Value {
    let text = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let rows = text.lines().skip(1).filter_map(|line| {
        // `Max open files            256                  256                  files`
        let (name, values) = line.split_at_checked(26)?;
        let mut values = values.split_whitespace();
        let (soft, hard) = (values.next()?, values.next()?);
        Some((name.trim().trim_start_matches("Max ").to_owned(), json!(format!("{soft} {hard}"))))
    });
    Value::Object(rows.collect())
}

/// Whether it leads a session and a group of its own, and whether a terminal controls it.
fn session() -> Value {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in brackets: state, parent, group, session, terminal.
    let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(2);
    let mut next = || fields.next().unwrap_or_default().to_owned();
    let (group, session, terminal) = (next(), next(), next());
    let own = std::process::id().to_string();
    json!({"leads_group": group == own, "leads_session": session == own, "terminal": terminal})
}

/// The keyrings that it can see, by name.
fn keyrings() -> Value {
    const GET_KEYRING_ID: usize = 0;
    const SESSION: usize = usize::MAX - 2;
    let text = fs::read_to_string("/proc/keys").unwrap_or_default();
    let mut names: Vec<&str> = text
        .lines()
        .filter(|line| line.contains(" keyring "))
        // The user's own are the kernel's, and there once any program of that user has asked for one.
        .filter(|line| !line.contains(" _uid"))
        .filter_map(|line| line.split_whitespace().nth(8))
        .map(|name| name.trim_end_matches(':'))
        .collect();
    names.sort_unstable();
    json!({"seen": names, "asked": number(libc::SYS_keyctl, &[GET_KEYRING_ID, SESSION, 0])})
}
