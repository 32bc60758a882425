#![forbid(unsafe_code)]
//! The users and groups of this host, from `/etc/passwd` and `/etc/group`: the same files that the helper
//! reads, so that both mean the same account by a name.

use crate::failure::Failure;
use std::fs;

pub use gloveportd::accounts::{name_of, uid_of};

/// The daemon's account on an installed host.
pub const DAEMON: &str = "gloveport";
/// The account that programs run as where an action names none.
pub const RUN: &str = "gloveport-run";

/// An entry of `/etc/passwd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name; the number itself where a number was given that has no entry.
    pub name: String,
    /// Its uid.
    pub uid: u32,
    /// Its primary gid.
    pub gid: u32,
}

/// The account of that name or number. A number without an entry is its own group.
///
/// # Errors
/// There is no such name.
pub fn find(name: &str) -> Result<Account, Failure> {
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    find_in(&passwd, name).ok_or_else(|| {
        Failure::new(format!("there is no user `{name}` in /etc/passwd")).remedy(how_to_add(name))
    })
}

/// The gid of a group.
pub fn group(name: &str) -> Option<u32> {
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    fields(&groups)
        .find(|fields| fields.first() == Some(&name))
        .and_then(|fields| fields.get(2)?.parse().ok())
}

/// The groups that list an account as a member, beside its own.
pub fn memberships(account: &str) -> Vec<String> {
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let listed = |fields: &Vec<&str>| members_of(fields).any(|member| member == account);
    fields(&groups)
        .filter(listed)
        .filter_map(|fields| fields.first().map(|name| (*name).to_owned()))
        .collect()
}

/// The accounts that a group lists as members.
pub fn members(group: &str) -> Vec<String> {
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let found = fields(&groups).find(|fields| fields.first() == Some(&group)).unwrap_or_default();
    members_of(&found).map(str::to_owned).collect()
}

fn members_of<'a>(fields: &[&'a str]) -> impl Iterator<Item = &'a str> {
    fields.get(3).copied().unwrap_or_default().split(',').filter(|member| !member.is_empty())
}

/// How a missing account comes to be.
pub fn how_to_add(name: &str) -> String {
    match name {
        DAEMON | RUN => format!(
            "as root: useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin {name}\n\
             (`make run` and the packages do that)"
        ),
        _ => "name a user of this host, or its number".to_owned(),
    }
}

fn fields(file: &str) -> impl Iterator<Item = Vec<&str>> {
    file.lines().map(|line| line.split(':').collect())
}

fn find_in(passwd: &str, name: &str) -> Option<Account> {
    let number: Option<u32> = name.parse().ok();
    let entry = fields(passwd).find_map(|fields| {
        let uid: u32 = fields.get(2)?.parse().ok()?;
        let gid: u32 = fields.get(3)?.parse().ok()?;
        let found = *fields.first()?;
        (found == name || number == Some(uid)).then(|| Account { name: found.to_owned(), uid, gid })
    });
    entry.or_else(|| number.map(|uid| Account { name: name.to_owned(), uid, gid: uid }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nbroken\nweb:x:33:34::/:/bin/false\n";

    #[test]
    fn an_account_is_found_by_name_and_by_number() {
        let web = Account { name: "web".into(), uid: 33, gid: 34 };
        assert_eq!(find_in(PASSWD, "web"), Some(web.clone()));
        assert_eq!(find_in(PASSWD, "33"), Some(web));
        assert_eq!(find_in(PASSWD, "nobody-here"), None);
    }

    #[test]
    fn members_are_the_last_field_of_a_group() {
        let listed = |line: &'static str| {
            let fields: Vec<&str> = line.split(':').collect();
            members_of(&fields).collect::<Vec<_>>()
        };
        assert_eq!(listed("gloveport:x:990:ana,ben"), ["ana", "ben"]);
        assert_eq!(listed("gloveport:x:990:"), Vec::<&str>::new());
        assert_eq!(listed("broken"), Vec::<&str>::new());
    }

    #[test]
    fn a_number_without_an_entry_is_its_own_group() {
        assert_eq!(find_in(PASSWD, "61000"), Some(Account { name: "61000".into(), uid: 61000, gid: 61000 }));
    }
}
