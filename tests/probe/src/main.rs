//! A hostile program, a subcommand per attack or inspection.
//!
//! The suites have the pair run it in the place of an honest program. Each attack prints one line, `ok` or
//! `errno NAME`, and exits 0: what the kernel said is the result, not the exit code. `state` prints what the
//! program was given, as JSON. It is linked statically, so that it needs nothing but itself, and has no
//! `main` of Rust's, so that the signal state it reports is the one that it got.

#![no_main]

mod address_space;
mod calls;
mod exec;
mod files;
mod identity;
mod network;
mod product;
mod raw;
mod state;
mod trees;

use raw::Outcome;

/// The entry point that the C runtime calls.
#[unsafe(no_mangle)]
pub extern "C" fn main(_argc: libc::c_int, _argv: *const *const libc::c_char) -> libc::c_int {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some((subcommand, args)) = words.split_first() else {
        println!("subcommands: see tests/probe/src");
        return 64;
    };
    let outcome = exec::attack(subcommand, args)
        .or_else(|| address_space::attack(subcommand, args))
        .or_else(|| files::attack(subcommand, args))
        .or_else(|| network::attack(subcommand, args))
        .or_else(|| identity::attack(subcommand, args))
        .or_else(|| calls::attack(subcommand, args))
        .or_else(|| product::attack(subcommand, args));
    match outcome {
        Some(outcome) => {
            report(outcome);
            0
        }
        None => {
            state::inspect(subcommand, args).or_else(|| trees::act(subcommand, args)).unwrap_or_else(|| {
                println!("no such subcommand: {subcommand}");
                64
            })
        }
    }
}

fn report(outcome: Outcome) {
    match outcome {
        Ok(_) => println!("ok"),
        Err(errno) => println!("errno {}", raw::name(errno)),
    }
}

/// A number among the arguments; 0 where there is none.
fn number(args: &[&str], at: usize) -> usize {
    let text = args.get(at).copied().unwrap_or("0");
    match text.strip_prefix("0x") {
        Some(digits) => usize::from_str_radix(digits, 16).unwrap_or(0),
        // A negative number travels as the two's complement, as a register holds it.
        None => text.parse::<isize>().map(isize::cast_unsigned).or_else(|_| text.parse()).unwrap_or(0),
    }
}

/// A text among the arguments; empty where there is none.
fn text<'a>(args: &[&'a str], at: usize) -> &'a str {
    args.get(at).copied().unwrap_or("")
}
