#![forbid(unsafe_code)]
//! Account names and numbers, as `/etc/passwd` has them. The helper resolves `run_as` the same way.

use std::fs;

const PASSWD: &str = "/etc/passwd";

/// The uid of an account as a catalogue writes it: a name, or `uid:gid`.
pub fn uid_of(account: &str) -> Option<u32> {
    match account.split_once(':') {
        Some((uid, _)) => uid.parse().ok(),
        None => find(&fs::read_to_string(PASSWD).ok()?, |name, _| name == account).map(|(_, uid)| uid),
    }
}

/// The name of a uid; the number itself where it has none.
pub fn name_of(uid: u32) -> String {
    let passwd = fs::read_to_string(PASSWD).unwrap_or_default();
    find(&passwd, |_, number| number == uid).map_or_else(|| uid.to_string(), |(name, _)| name.to_owned())
}

fn find(passwd: &str, wanted: impl Fn(&str, u32) -> bool) -> Option<(&str, u32)> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, uid) = (fields.next()?, fields.nth(1)?.parse().ok()?);
        wanted(name, uid).then_some((name, uid))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_for_themselves_and_root_is_zero() {
        assert_eq!(uid_of("34567:34568"), Some(34567));
        assert_eq!(uid_of("root"), Some(0));
        assert_eq!(uid_of("no such account"), None);
        assert_eq!(name_of(0), "root");
        assert_eq!(name_of(4_000_000_000), "4000000000");
    }
}
