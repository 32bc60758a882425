#![forbid(unsafe_code)]
//! One small filter program from a list of rules.
//!
//! seccompiler compares a call's number with one listed number after the other, and the kernel walks through
//! that for every number that there is, with interrupts off, whenever a filter is loaded: half a millisecond
//! for an allow-list. Here the number is looked up by halving, and neighbours with the same answer are one area.
//! What is asked about arguments stays seccompiler's; a test compares the answers with those of its own programs.

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompFilter, SeccompRule, TargetArch, sock_filter,
};
use std::collections::BTreeMap;

/// What seccompiler puts before the rules of a filter's only call: the architecture, in three instructions,
/// and the number, in two.
const ARCHITECTURE: usize = 3;
const NUMBER: usize = 2;

/// BPF_LD | BPF_W | BPF_ABS: what is at an offset of struct seccomp_data.
const LOAD: u16 = 0x20;
/// BPF_JMP | BPF_JA.
const JUMP: u16 = 0x05;
/// BPF_JMP | BPF_JGE | BPF_K.
const JUMP_IF_AT_LEAST: u16 = 0x35;
/// BPF_RET | BPF_K.
const RETURN: u16 = 0x06;

/// The offset of the number in struct seccomp_data.
const OFFSET_OF_NUMBER: u32 = 0;

/// The numbers from one up to the next area's, and the instructions that answer there.
#[derive(Debug, Clone)]
struct Area {
    first: u32,
    answer: BpfProgram,
}

/// Packs a program: what a rule of its call fits passes, what is `absent` gets ENOSYS, anything else EPERM.
///
/// # Errors
/// What seccompiler does not take; on an architecture it does not know, its name.
pub fn pack(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    absent: &[libc::c_long],
) -> Result<BpfProgram, BackendError> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let mut answers = BTreeMap::new();
    for (call, rules) in rules {
        let answer = if rules.is_empty() {
            vec![answer(SeccompAction::Allow)]
        } else {
            let only = BTreeMap::from([(call, rules)]);
            let program: BpfProgram =
                SeccompFilter::new(only, refused.clone(), SeccompAction::Allow, arch)?.try_into()?;
            program.into_iter().skip(ARCHITECTURE + NUMBER).collect()
        };
        answers.insert(call, answer);
    }
    for call in absent {
        answers.insert(*call, vec![answer(SeccompAction::Errno(libc::ENOSYS as u32))]);
    }
    let nothing = SeccompFilter::new(BTreeMap::new(), refused.clone(), SeccompAction::Allow, arch)?;
    let mut program: BpfProgram = BpfProgram::try_from(nothing)?.into_iter().take(ARCHITECTURE).collect();
    program.push(instruction(LOAD, OFFSET_OF_NUMBER));
    program.extend(search(&areas(answers, &[answer(refused)])));
    Ok(program)
}

/// The areas of all numbers there are; those that are not listed get the other answer.
fn areas(answers: BTreeMap<i64, BpfProgram>, other: &[sock_filter]) -> Vec<Area> {
    let mut areas = vec![Area { first: 0, answer: other.to_vec() }];
    let mut next = 0;
    let mut begin = |first: u32, answer: BpfProgram| match areas.last_mut() {
        Some(last) if last.answer == answer => {}
        Some(last) if last.first == first => last.answer = answer,
        _ => areas.push(Area { first, answer }),
    };
    for (call, answer) in answers {
        // No architecture numbers its calls any higher; one that did would not be let through.
        let Ok(call) = u32::try_from(call) else { continue };
        if call > next {
            begin(next, other.to_vec());
        }
        begin(call, answer);
        next = call.saturating_add(1);
    }
    begin(next, other.to_vec());
    areas
}

/// Instructions that find the area of the loaded number, by halving.
fn search(areas: &[Area]) -> BpfProgram {
    let (lower, upper) = areas.split_at(areas.len() / 2);
    let Some(middle) = upper.first() else { return BpfProgram::new() };
    if lower.is_empty() {
        return middle.answer.clone();
    }
    let lower = search(lower);
    let mut found = match u8::try_from(lower.len()) {
        Ok(length) => vec![sock_filter { jt: length, ..instruction(JUMP_IF_AT_LEAST, middle.first) }],
        // Only the unconditional jump goes farther than 255 instructions.
        Err(_) => vec![
            sock_filter { jf: 1, ..instruction(JUMP_IF_AT_LEAST, middle.first) },
            instruction(JUMP, u32::try_from(lower.len()).unwrap_or(u32::MAX)),
        ],
    };
    found.extend(lower);
    found.extend(search(upper));
    found
}

fn answer(action: SeccompAction) -> sock_filter {
    instruction(RETURN, action.into())
}

fn instruction(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}
