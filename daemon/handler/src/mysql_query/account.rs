#![forbid(unsafe_code)]
//! What an account may do beside reading, by the server's own word (SHOW GRANTS).

use super::login::Login;
use super::rows::Limits;
use super::statement;
use crate::check::Finding;
use crate::credential::Credential;
use crate::failure::Failure;
use gloveport_contract::catalog::BuiltinConfig;
use serde_json::Value;
use std::time::Duration;

/// How long the server may be silent.
const PATIENCE: Duration = Duration::from_secs(10);
/// An account with more rights than that is looked at as far as this.
const GRANTS: Limits = Limits { rows: 1000, bytes: 256 * 1024 };
/// Rights with which nothing is changed and no file is read.
const READING: [&str; 9] = [
    "USAGE",
    "SELECT",
    "SHOW VIEW",
    "SHOW DATABASES",
    "PROCESS",
    "BINLOG MONITOR",
    "REPLICATION CLIENT",
    "REPLICA MONITOR",
    "SLAVE MONITOR",
];

/// Logs in and reads the account's grants.
///
/// # Errors
/// The server cannot be reached, or refuses the account.
pub fn examine(config: &BuiltinConfig, credential: Credential) -> Result<Vec<Finding>, Failure> {
    let login = Login {
        server: config.server.clone().unwrap_or_default(),
        database: config.database.clone(),
        credential,
        patience: PATIENCE,
    };
    let mut connection = login.connect()?;
    let mut ask = |sql: &str| -> Result<Vec<String>, Failure> {
        let rows = statement::run(&mut connection, sql, &[], &GRANTS)
            .map_err(|broken| broken.of(&format!("{sql} on {}", login.server)))?
            .rows;
        Ok(rows.iter().filter_map(|row| row.get(0).and_then(Value::as_str)).map(str::to_owned).collect())
    };
    let account = ask("SELECT CURRENT_USER()")?.pop().unwrap_or_default();
    let lines = ask("SHOW GRANTS")?;
    let grants: Vec<Grant> = lines.iter().filter_map(|line| Grant::read(line)).collect();
    let remedy = remedy(&account, config.database.as_deref());
    let place = format!("the account {account} at {}", login.server);
    let findings: Vec<Finding> = complaints(&grants)
        .into_iter()
        .map(|complaint| Finding::warn(format!("{place} {complaint}"), remedy.clone()))
        .collect();
    if findings.is_empty() {
        return Ok(vec![Finding::ok(format!("{place} may read and nothing else"))]);
    }
    Ok(findings)
}

/// A line of SHOW GRANTS.
#[derive(Debug, PartialEq, Eq)]
struct Grant {
    rights: Vec<String>,
    on: String,
    hands_on: bool,
}

impl Grant {
    /// Reads `GRANT right, right (columns) ON object TO …`; nothing of a line about roles. What stands behind
    /// `TO` is not looked at: a server may tell the digest of the password there.
    fn read(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("GRANT ")?;
        let (rights, rest) = split_at_word(rest, " ON ")?;
        let (on, rest) = split_at_word(rest, " TO ")?;
        let mut names: Vec<String> = Vec::new();
        let mut name = String::new();
        for (outside, c) in outside_of_quotes_and_parentheses(rights) {
            match c {
                ',' if outside => names.push(std::mem::take(&mut name)),
                c if outside => name.push(c),
                _ => {}
            }
        }
        names.push(name);
        let rights = names.iter().map(|name| name.trim().to_ascii_uppercase()).collect();
        Some(Self { rights, on: on.to_owned(), hands_on: rest.ends_with("WITH GRANT OPTION") })
    }

    fn has(&self, right: &str) -> bool {
        // Both are rights of the whole server only.
        let all = self.on == "*.*" && self.rights.iter().any(|name| name == "ALL PRIVILEGES");
        all || self.rights.iter().any(|name| name == right)
    }

    /// The rights with which more than reading is possible.
    fn more(&self) -> Option<String> {
        let more: Vec<&str> =
            self.rights.iter().map(String::as_str).filter(|right| !READING.contains(right)).collect();
        (!more.is_empty()).then(|| format!("{} on {}", more.join(", "), self.on))
    }
}

/// The characters of a text, each with whether it stands outside of quotes and parentheses.
fn outside_of_quotes_and_parentheses(text: &str) -> impl Iterator<Item = (bool, char)> {
    let (mut quoted, mut depth) = (false, 0_u32);
    text.chars().map(move |c| {
        match c {
            '`' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => {
                depth = depth.saturating_sub(1);
                return (false, c);
            }
            _ => {}
        }
        (!quoted && depth == 0 && c != '`', c)
    })
}

/// Splits at a word that is no part of a name.
fn split_at_word<'t>(text: &'t str, word: &str) -> Option<(&'t str, &'t str)> {
    let outside: Vec<bool> = outside_of_quotes_and_parentheses(text)
        .flat_map(|(outside, c)| std::iter::repeat_n(outside, c.len_utf8()))
        .collect();
    let (at, _) = text.match_indices(word).find(|(at, _)| outside.get(*at).copied().unwrap_or(false))?;
    Some((text.get(..at)?, text.get(at + word.len()..)?))
}

fn complaints(grants: &[Grant]) -> Vec<String> {
    let has = |right: &str| grants.iter().any(|grant| grant.has(right));
    let mut found = Vec::new();
    if has("FILE") {
        found.push("has FILE: it can read and write files of the server".to_owned());
    }
    if has("SUPER") {
        found.push(
            "has SUPER: it can change the settings of the server and end the sessions of others".to_owned(),
        );
    }
    let more: Vec<String> = grants.iter().filter_map(Grant::more).collect();
    if !more.is_empty() {
        found.push(format!("may do more than read: {}", more.join("; ")));
    }
    if grants.iter().any(|grant| grant.hands_on) {
        found.push("can hand its rights on (GRANT OPTION)".to_owned());
    }
    if grants.iter().any(|grant| grant.on == "*.*" && grant.rights.iter().any(|right| right == "SELECT")) {
        found.push(
            "reads every database, the one with all accounts and their password digests too".to_owned(),
        );
    }
    found
}

/// The statements that leave an account what the handler needs.
fn remedy(account: &str, database: Option<&str>) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let (user, host) = account.rsplit_once('@').unwrap_or((account, "%"));
    let account = format!("{}@{}", quoted(user), quoted(host));
    let database = database.map_or("DATABASE".to_owned(), |name| format!("`{}`", name.replace('`', "``")));
    format!("REVOKE ALL PRIVILEGES, GRANT OPTION FROM {account}; GRANT SELECT ON {database}.* TO {account};")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Vec<String> {
        complaints(&lines.iter().filter_map(|line| Grant::read(line)).collect::<Vec<_>>())
    }

    #[test]
    fn an_account_that_only_reads_is_no_complaint() {
        let reads = of(&[
            "GRANT USAGE ON *.* TO `reader`@`localhost` IDENTIFIED BY PASSWORD '*DIGEST'",
            "GRANT SELECT, SHOW VIEW ON `app`.* TO `reader`@`localhost`",
            "GRANT SELECT (`a, INSERT ON b`, `c`) ON `app`.`t` TO `reader`@`localhost`",
            "GRANT `role` TO `reader`@`localhost`",
            "SET DEFAULT ROLE `role` FOR `reader`@`localhost`",
        ]);
        assert_eq!(reads, [""; 0]);
    }

    #[test]
    fn what_goes_beyond_reading_is_named() {
        assert_eq!(
            of(&["GRANT SELECT, INSERT, UPDATE (`a`) ON `app`.* TO `w`@`%`"]),
            ["may do more than read: INSERT, UPDATE on `app`.*"]
        );
        assert_eq!(of(&["GRANT FILE ON *.* TO `w`@`%`"]).len(), 2);
        let all =
            of(&["GRANT ALL PRIVILEGES ON *.* TO `w`@`%` IDENTIFIED BY PASSWORD '*D' WITH GRANT OPTION"]);
        assert!(
            all.iter().any(|text| text.contains("FILE")) && all.iter().any(|text| text.contains("SUPER"))
        );
        assert!(all.iter().any(|text| text.contains("GRANT OPTION")));
        assert!(all.iter().all(|text| !text.contains("*D")));
        assert_eq!(
            of(&["GRANT ALL PRIVILEGES ON `app`.* TO `w`@`%`"]),
            ["may do more than read: ALL PRIVILEGES on `app`.*"]
        );
        assert!(of(&["GRANT SELECT ON *.* TO `r`@`%`"]).concat().contains("every database"));
    }

    #[test]
    fn the_remedy_quotes_what_it_names() {
        assert_eq!(
            remedy("o'hara@localhost", Some("a`b")),
            "REVOKE ALL PRIVILEGES, GRANT OPTION FROM 'o''hara'@'localhost'; GRANT SELECT ON `a``b`.* TO 'o''hara'@'localhost';"
        );
    }
}
