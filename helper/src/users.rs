#![forbid(unsafe_code)]
//! Accounts and groups of this host, read from `/etc/passwd` and `/etc/group` by ourselves.
//!
//! The name service switch is not asked: it loads libraries into the process and its answers may come
//! over a network. An account that exists only there is named by its numbers, `"uid:gid"`.

use crate::trusted_file::{self, TrustedFileError};
use std::path::Path;

/// Largest file that is read, bytes: half a million accounts.
const LIMIT: usize = 32 * 1024 * 1024;
/// Means "leave it as it is" to the system calls that change identity, so it must never name an account.
const NOBODY_AT_ALL: u32 = u32::MAX;

/// An account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its number.
    pub uid: u32,
    /// Its primary group.
    pub gid: u32,
    /// Its name; the number where `/etc/passwd` has none.
    pub name: String,
    /// Its home directory; `/` where `/etc/passwd` has none.
    pub home: String,
}

/// The accounts and groups of this host at one moment.
#[derive(Debug, Clone, Default)]
pub struct Users {
    accounts: Vec<Account>,
    groups: Vec<(String, u32)>,
}

impl Users {
    /// Reads both files.
    ///
    /// # Errors
    /// The file that is not there or not root's alone.
    pub fn read() -> Result<Self, TrustedFileError> {
        let read = |path| trusted_file::read(Path::new(path), LIMIT, false);
        Ok(Self::parse(&read("/etc/passwd")?, &read("/etc/group")?))
    }

    /// Reads both texts. Lines that are no entries are passed over, as the C library does.
    fn parse(passwd: &[u8], group: &[u8]) -> Self {
        Self {
            accounts: String::from_utf8_lossy(passwd).lines().filter_map(parse_account).collect(),
            groups: String::from_utf8_lossy(group).lines().filter_map(parse_group).collect(),
        }
    }

    /// The account of that name, or of the numbers `"uid:gid"`. Where a name stands twice the first counts.
    pub fn account(&self, name: &str) -> Option<Account> {
        let Some((uid, gid)) = name.split_once(':') else {
            return self.accounts.iter().find(|account| account.name == name).cloned();
        };
        let (uid, gid) = (number(uid)?, number(gid)?);
        let named = self.by_uid(uid);
        Some(Account {
            uid,
            gid,
            name: named.map_or_else(|| uid.to_string(), |account| account.name.clone()),
            home: named.map_or_else(|| "/".to_owned(), |account| account.home.clone()),
        })
    }

    /// The first account of that number.
    pub fn by_uid(&self, uid: u32) -> Option<&Account> {
        self.accounts.iter().find(|account| account.uid == uid)
    }

    /// The number of a group.
    pub fn group(&self, name: &str) -> Option<u32> {
        self.groups.iter().find(|(known, _)| known == name).map(|(_, gid)| *gid)
    }

    /// The names of a group; several may have one number.
    pub fn group_names(&self, gid: u32) -> impl Iterator<Item = &str> {
        self.groups.iter().filter(move |(_, known)| *known == gid).map(|(name, _)| name.as_str())
    }
}

/// A uid or gid: digits only, and not the one that means "unchanged".
pub fn number(text: &str) -> Option<u32> {
    // `parse` would also take a sign.
    text.parse().ok().filter(|number| !text.starts_with('+') && *number != NOBODY_AT_ALL)
}

fn parse_account(line: &str) -> Option<Account> {
    let mut fields = line.split(':');
    let (name, _password, uid, gid) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let (_comment, home, _shell) = (fields.next()?, fields.next()?, fields.next()?);
    let account =
        Account { uid: number(uid)?, gid: number(gid)?, name: entry_name(name)?, home: home.to_owned() };
    fields.next().is_none().then_some(account)
}

fn parse_group(line: &str) -> Option<(String, u32)> {
    let mut fields = line.split(':');
    let (name, _password, gid) = (fields.next()?, fields.next()?, fields.next()?);
    Some((entry_name(name)?, number(gid)?))
}

/// `+` and `-` refer to NIS, `#` is a comment.
fn entry_name(name: &str) -> Option<String> {
    (!name.is_empty() && !name.starts_with(['+', '-', '#'])).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users() -> Users {
        Users::parse(
            b"root:x:0:0:root:/root:/bin/sh\nrun:x:990:991::/nonexistent:/usr/sbin/nologin\n\
              # comment:x:1:1::/:/x\n+nis:x:5:5::/:/x\nshort:x:7:7\nminus:x:4294967295:1::/:/x\n\
              signed:x:+8:8::/:/x\nrun:x:0:0::/:/x\nlong:x:9:9::/:/x:more\n",
            b"root:x:0:\njournal:x:101:run\nbad:x:4294967295:\n",
        )
    }

    #[test]
    fn an_account_is_found_by_name_and_the_first_entry_counts() {
        let account = users().account("run").unwrap();
        assert_eq!((account.uid, account.gid, account.home.as_str()), (990, 991, "/nonexistent"));
        assert_eq!(users().account("absent"), None);
    }

    #[test]
    fn lines_that_are_no_entries_name_nobody() {
        for name in ["# comment", "+nis", "short", "minus", "signed", "long", ""] {
            assert_eq!(users().account(name), None, "{name}");
        }
    }

    #[test]
    fn numbers_need_no_entry() {
        let account = users().account("30001:30002").unwrap();
        assert_eq!((account.uid, account.gid, account.name.as_str()), (30001, 30002, "30001"));
        assert_eq!(users().account("990:5").map(|a| (a.name, a.gid)), Some(("run".into(), 5)));
    }

    #[test]
    fn the_number_that_means_unchanged_is_refused() {
        for name in ["4294967295:1", "1:4294967295", "4294967296:1", "-1:1", "+1:1", "1:", ":1", "1:2:3"] {
            assert_eq!(users().account(name), None, "{name}");
        }
        assert_eq!(users().group("bad"), None);
    }

    #[test]
    fn a_group_is_found_by_name() {
        assert_eq!(users().group("journal"), Some(101));
        assert_eq!(users().group("absent"), None);
    }

    #[test]
    fn this_host_has_a_root() {
        assert_eq!(Users::read().unwrap().account("root").map(|a| a.uid), Some(0));
    }
}
