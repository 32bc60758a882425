#![forbid(unsafe_code)]
//! `gloveport token`: who may call what.

mod scope;
pub mod store;

use crate::accounts::Account;
use crate::failure::{Failure, Outcome};
use crate::{accounts, catalog, out};
use clap::{Args, Subcommand, ValueEnum};
use gloveport_contract::token::{LocalUser, Token, Tokens, Via};
use gloveportd::paths::Paths;
use gloveportd::policy::run_as_uids;
use scope::ScopeArgs;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Who may call what.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token; its secret is shown once and stored nowhere
    Add(AddArgs),
    /// The tokens and local users, with what they may call
    List {
        /// Print one line of JSON
        #[arg(long)]
        json: bool,
    },
    /// End a token at once, by its name or id
    Revoke {
        /// The name or the id
        token: String,
    },
    /// Let a user of this host call over the local socket, without a token
    AllowUser(AllowUserArgs),
    /// Take that back
    DenyUser {
        /// The user's name or number
        user: String,
    },
}

/// A new token.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// A name for people: 1 to 64 of A-Z a-z 0-9 . _ -
    #[arg(long)]
    name: String,
    /// How a client may present it: header (the usual way), path (a URL that holds it), argument (`api_key`)
    #[arg(long, value_delimiter = ',', default_value = "header")]
    via: Vec<Way>,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Print one line of JSON: name, id, token and, with `path`, url
    #[arg(long)]
    json: bool,
}

/// A user of this host.
#[derive(Debug, Args)]
pub struct AllowUserArgs {
    /// The user's name or number
    user: String,
    #[command(flatten)]
    scope: ScopeArgs,
}

/// How a token is presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// `Authorization: Bearer …`
    Header,
    /// The tool argument `api_key`
    Argument,
    /// `/mcp/t/TOKEN`
    Path,
}

impl From<Way> for Via {
    fn from(way: Way) -> Self {
        match way {
            Way::Header => Self::Header,
            Way::Argument => Self::Argument,
            Way::Path => Self::Path,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the arguments or the file.
pub fn run(command: &TokenCommand, paths: &Paths) -> Outcome {
    match command {
        TokenCommand::Add(args) => add(args, paths),
        TokenCommand::List { json } => list(*json, paths),
        TokenCommand::Revoke { token } => revoke(token, paths),
        TokenCommand::AllowUser(args) => allow_user(args, paths),
        TokenCommand::DenyUser { user } => deny_user(user, paths),
    }
}

fn add(args: &AddArgs, paths: &Paths) -> Outcome {
    let mut via: Vec<Via> = Vec::new();
    for way in args.via.iter().copied().map(Via::from) {
        if !via.contains(&way) {
            via.push(way);
        }
    }
    let (token, secret) = store::mint(&args.name, via, args.scope.scope()?)?;
    let (id, by_path) = (token.id.clone(), token.via.contains(&Via::Path));
    store::edit(paths, |tokens| {
        if tokens.tokens.iter().any(|other| other.name == token.name) {
            return Err(Failure::usage(format!("there is a token named `{}`", token.name)).remedy(format!(
                "choose another name, or end it first: gloveport token revoke {}",
                token.name
            )));
        }
        tokens.tokens.push(token);
        Ok(())
    })?;
    let url = by_path.then(|| format!("{}/t/{secret}", crate::address::of_daemon(paths)));
    if args.json {
        let mut made = json!({"name": args.name, "id": id, "token": secret});
        if let (Some(url), Some(made)) = (url, made.as_object_mut()) {
            made.insert("url".into(), url.into());
        }
        out::json(&made);
        return Ok(0);
    }
    out::line(url.as_deref().unwrap_or(&secret));
    if out::is_terminal() {
        out::note("shown once: keep it where the client reads it; `gloveport client-config CLIENT` helps");
    }
    Ok(0)
}

fn list(json: bool, paths: &Paths) -> Outcome {
    let Tokens { tokens, local_users } = store::read(paths)?;
    if json {
        let entries: Vec<Value> =
            tokens.iter().map(token_json).chain(local_users.iter().map(user_json)).collect();
        out::json(&entries);
        return Ok(0);
    }
    if tokens.is_empty() && local_users.is_empty() {
        out::note("no token and no local user: nobody may call; `gloveport token add --name NAME`");
        return Ok(0);
    }
    let titles = ["NAME", "ID", "VIA", "MAY CALL", "UP TO", "EXPIRES", "MORE"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for token in &tokens {
        let via: Vec<&str> = token.via.iter().map(|via| via_name(*via)).collect();
        rows.push(
            [vec![token.name.clone(), token.id.clone(), via.join(",")], scope::columns(&token.scope)]
                .concat(),
        );
    }
    for user in &local_users {
        let name = accounts::name_of(user.uid);
        rows.push(
            [vec![name, format!("uid {}", user.uid), "socket".into()], scope::columns(&user.scope)].concat(),
        );
    }
    out::text(&out::table(&rows));
    Ok(0)
}

fn via_name(via: Via) -> &'static str {
    match via {
        Via::Header => "header",
        Via::Path => "path",
        Via::Argument => "argument",
    }
}

/// A token without its digest, the scope beside the rest.
fn token_json(token: &Token) -> Value {
    let mut entry = json!({"kind": "token", "name": token.name, "id": token.id, "via": token.via});
    scope::into_json(&token.scope, &mut entry);
    entry
}

fn user_json(user: &LocalUser) -> Value {
    let mut entry = json!({"kind": "local_user", "name": accounts::name_of(user.uid), "uid": user.uid});
    scope::into_json(&user.scope, &mut entry);
    entry
}

fn revoke(wanted: &str, paths: &Paths) -> Outcome {
    let name = store::edit(paths, |tokens| {
        let found = tokens.tokens.iter().position(|token| token.name == wanted || token.id == wanted);
        match found {
            Some(at) => Ok(tokens.tokens.remove(at).name),
            None => Err(Failure::new(format!("there is no token `{wanted}`"))
                .remedy("`gloveport token list` shows names and ids")),
        }
    })?;
    out::note(format!("revoked {name}"));
    Ok(0)
}

fn allow_user(args: &AllowUserArgs, paths: &Paths) -> Outcome {
    let account = accounts::find(&args.user)?;
    refuse_run_as(paths, &account)?;
    let scope = args.scope.scope()?;
    store::edit(paths, |tokens| {
        tokens.local_users.retain(|user| user.uid != account.uid);
        tokens.local_users.push(LocalUser { uid: account.uid, scope });
        Ok(())
    })?;
    out::note(format!("{} (uid {}) may call over {}", account.name, account.uid, paths.mcp_socket.display()));
    Ok(0)
}

/// A program of a run must not start runs: the daemon refuses an account that actions run as, so listing it
/// would only look like a permission.
fn refuse_run_as(paths: &Paths, account: &Account) -> Result<(), Failure> {
    let mut uids: BTreeSet<u32> = accounts::uid_of(accounts::RUN).into_iter().collect();
    // Without a catalogue nothing runs as anybody. One that comes into force later is the daemon's to compare.
    if let Ok(catalog) = catalog::load(&paths.catalog) {
        uids.extend(run_as_uids(&catalog));
    }
    if !uids.contains(&account.uid) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "actions run as {} (uid {}): a program that is run could start others through the local socket",
        account.name, account.uid
    ))
    .remedy("allow the user whose agent calls; `gloveport catalog show` tells as whom actions run"))
}

fn deny_user(user: &str, paths: &Paths) -> Outcome {
    let account = accounts::find(user)?;
    store::edit(paths, |tokens| {
        let before = tokens.local_users.len();
        tokens.local_users.retain(|user| user.uid != account.uid);
        if tokens.local_users.len() == before {
            return Err(Failure::new(format!("{} is not among the local users", account.name)));
        }
        Ok(())
    })?;
    out::note(format!("{} may no longer call over {}", account.name, paths.mcp_socket.display()));
    Ok(0)
}
