#![forbid(unsafe_code)]
//! `write_file`: replaces, creates or extends a regular file under a signed root.
//!
//! A replacement is written beside the target and renamed over it, so a reader sees the old content or
//! the new one. Nothing is touched before the content was verified against its declared digest.

mod attributes;
mod diff;
mod draft;
mod target;

use crate::answer::{Answer, from_base64};
use crate::call::Call;
use crate::failure::{Failure, refuse};
use crate::files::{ABSENT, Roots, version};
use crate::stamp::compact;
use draft::Draft;
use serde_json::{Value, json};
use std::time::SystemTime;
use target::{Existing, Target};

/// What a caller asks for.
struct Request<'c> {
    path: &'c str,
    content: Vec<u8>,
    append: bool,
    backup: bool,
    mode: Option<u32>,
    expect: Option<&'c str>,
}

/// Answers one call.
pub fn run(call: &Call) -> Result<Answer, Failure> {
    let request = request(call)?;
    let roots = Roots::new(&call.config.write)?;
    let target = Target::find(roots.covering(request.path)?, request.path)?;
    let existing = target.existing()?;
    check_expected(&request, existing.as_ref())?;
    if call.switch("dry_run")? {
        return dry_run(call, &request, existing);
    }
    check_file_size(&request, existing.as_ref())?;

    let backup = match &existing {
        Some(old) if request.backup => Some(keep_backup(&target, old)?),
        _ => None,
    };
    let mut not_kept = Vec::new();
    let done = match &existing {
        Some(old) if request.append => {
            target.append(old, &request.content, request.mode)?;
            "appended"
        }
        Some(old) => {
            let draft = Draft::create(&target, &request.content)?;
            not_kept = draft.take_after(old, request.mode)?;
            target.check_unchanged(old)?;
            draft.replace(&target)?;
            "replaced"
        }
        None => {
            let draft = Draft::create(&target, &request.content)?;
            draft.set_mode(request.mode.unwrap_or(draft::NEW_FILE))?;
            draft.publish(&target, target.name)?;
            "created"
        }
    };
    let Some(new) = target.existing()? else {
        return refuse(format!("{} was written, and removed by somebody else since", request.path));
    };
    Ok(Answer::new(json!({
        "path": request.path,
        "action": done,
        "bytes": request.content.len(),
        "size": new.stat.st_size,
        "mode": format!("{:04o}", new.stat.st_mode & 0o7777),
        "version": version(&new.stat),
        "backup": backup,
        "not_kept": not_kept,
    })))
}

fn request(call: &Call) -> Result<Request<'_>, Failure> {
    let most = call.config.max_bytes();
    let content = match call.text("encoding")? {
        None => call.content(most)?,
        Some("utf-8") => {
            let content = call.content(most)?;
            if std::str::from_utf8(&content).is_err() {
                return refuse("content: not UTF-8; send bytes as base64, with encoding base64");
            }
            content
        }
        Some("base64") => {
            // Four characters carry three bytes; a line may end after each 76.
            let content = from_base64(&call.content(most.saturating_mul(3) / 2)?)
                .ok_or_else(|| Failure::refused("content: not base64"))?;
            if content.len() as u64 > most {
                return refuse(format!("content: {} bytes; this action takes at most {most}", content.len()));
            }
            content
        }
        Some(other) => return refuse(format!("encoding: `{other}` is neither utf-8 nor base64")),
    };
    Ok(Request {
        path: call.required("path")?,
        content,
        append: call.switch("append")?,
        backup: call.switch("backup")?,
        mode: call.text("mode")?.map(parse_mode).transpose()?,
        expect: call.text("expect")?,
    })
}

/// Three octal digits, or four of which the first is 0: set-id and sticky bits are for nobody to hand out.
fn parse_mode(text: &str) -> Result<u32, Failure> {
    let octal = text.len() <= 4 && text.len() >= 3 && text.bytes().all(|b| (b'0'..=b'7').contains(&b));
    match u32::from_str_radix(text, 8) {
        Ok(mode) if octal && mode <= 0o777 => Ok(mode),
        _ => refuse(format!("mode: `{text}` is not octal from 000 to 777, as in 0644")),
    }
}

/// An agent must not overwrite what it has not seen.
fn check_expected(request: &Request<'_>, existing: Option<&Existing>) -> Result<(), Failure> {
    let Some(expected) = request.expect else {
        return Ok(());
    };
    let found = existing.map_or_else(|| ABSENT.to_owned(), |old| version(&old.stat));
    if expected == found {
        return Ok(());
    }
    match existing {
        None => refuse(format!("{} does not exist, and another version was expected", request.path)),
        Some(_) if expected == ABSENT => {
            refuse(format!("{} exists; expected was that it does not", request.path))
        }
        Some(_) => refuse(format!("{} has changed since that version: read it again", request.path)),
    }
}

/// Checked here because going over RLIMIT_FSIZE ends the process by a signal.
fn check_file_size(request: &Request<'_>, existing: Option<&Existing>) -> Result<(), Failure> {
    let old = existing.map_or(0, |old| u64::try_from(old.stat.st_size).unwrap_or(0));
    let new = request.content.len() as u64;
    let copied = if request.backup { old } else { 0 };
    let largest = copied.max(if request.append { old.saturating_add(new) } else { new });
    match rustix::process::getrlimit(rustix::process::Resource::Fsize).current {
        Some(limit) if largest > limit => refuse(format!(
            "{}: a file of {largest} bytes is over the action's limits.file_size of {limit}",
            request.path
        )),
        _ => Ok(()),
    }
}

/// Copies what is there to `NAME.20260102T030405Z.bak`, with its attributes; gives the copy's path.
fn keep_backup(target: &Target<'_>, old: &Existing) -> Result<String, Failure> {
    let name = format!("{}.{}.bak", target.name, compact(SystemTime::now()));
    let draft = Draft::create(target, &old.content(u64::MAX)?)?;
    draft.take_after(old, None)?;
    draft.publish(target, &name)?;
    Ok(target.sibling(&name))
}

fn dry_run(call: &Call, request: &Request<'_>, existing: Option<Existing>) -> Result<Answer, Failure> {
    let most = call.config.max_bytes();
    let (old, found) = match &existing {
        Some(old) => (old.content(most)?, Value::from(version(&old.stat))),
        None => (Vec::new(), Value::from(ABSENT)),
    };
    let new =
        if request.append { [old.as_slice(), &request.content].concat() } else { request.content.clone() };
    let action = match (&existing, request.append) {
        (None, _) => "create",
        (Some(_), true) => "append",
        (Some(_), false) => "replace",
    };
    let mut answer = json!({
        "path": request.path, "dry_run": true, "action": action, "bytes": request.content.len(),
        "version": found, "changed": old != new,
    });
    let room = call.max_output.saturating_sub(crate::answer::json_length(&answer) + 100);
    let text = diff::unified(request.path, &old, &new);
    let shown = crate::answer::prefix_within(&text, room);
    if let Some(object) = answer.as_object_mut() {
        object.insert("diff_truncated".into(), (shown.len() < text.len()).into());
        object.insert("diff".into(), shown.into());
    }
    Ok(Answer::new(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_octal_without_set_id_bits() {
        assert_eq!(parse_mode("0640").unwrap(), 0o640);
        assert_eq!(parse_mode("755").unwrap(), 0o755);
        for text in ["4755", "1777", "0o644", "644 ", "+644", "8", "999", "", "64", "00644"] {
            assert!(parse_mode(text).is_err(), "{text}");
        }
    }
}
