#![forbid(unsafe_code)]
//! The catalogue in force, with all that is settled once when it is loaded: accounts, groups, filters.

use crate::actions::Actions;
use crate::host::Host;
use crate::load::Loaded;
use crate::sandbox::seccomp::{self, FilterKey};
use crate::sys::memory;
use crate::users::{Users, number};
use gloveport_contract::catalog::{Action, Catalog, Risk, Sandbox, is_root_group};
use seccompiler::BpfProgram;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Who a program runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name, or the number where there is none.
    pub name: String,
    /// The uid.
    pub uid: u32,
    /// The primary group.
    pub gid: u32,
    /// The supplementary groups: what the action names, not what `/etc/group` says.
    pub groups: Vec<u32>,
    /// Optional groups that this host does not have.
    pub absent: Vec<String>,
}

impl Identity {
    /// All its groups.
    pub fn all_groups(&self) -> Vec<u32> {
        [&[self.gid], self.groups.as_slice()].concat()
    }
}

/// A loaded catalogue.
pub struct InForce {
    /// The actions.
    pub actions: Actions,
    /// Its SHA-256.
    pub digest: [u8; 32],
    /// Whose signature it bears.
    pub signer: String,
    /// What an operator should look at, although it is allowed.
    pub warnings: Vec<String>,
    users: Users,
    filters: BTreeMap<FilterKey, BpfProgram>,
    daemon: (u32, u32),
    same_user: bool,
}

impl InForce {
    /// Settles a verified catalogue.
    ///
    /// # Errors
    /// A filter that cannot be built: this kernel's architecture is none that seccompiler knows.
    pub fn settle(
        loaded: Loaded,
        users: Users,
        host: &Host,
        daemon: (u32, u32),
        same_user: bool,
    ) -> Result<Self, String> {
        let mut this = Self {
            warnings: warnings(&loaded.catalog),
            actions: loaded.actions,
            digest: loaded.digest,
            signer: loaded.signer,
            users,
            filters: BTreeMap::new(),
            daemon,
            same_user,
        };
        for action in &loaded.catalog.actions {
            for sandbox in action.sandboxes() {
                if let Entry::Vacant(vacant) = this.filters.entry(filter_key(action, &sandbox)) {
                    let filter =
                        seccomp::build(vacant.key(), host.landlock_abi, host.page).map_err(|error| {
                            format!("action `{}`: its system call filter: {error}", action.name)
                        })?;
                    vacant.insert(filter);
                }
            }
        }
        drop(loaded.catalog);
        memory::give_back();
        Ok(this)
    }

    /// The filter of one sandbox of an action.
    pub fn filter(&self, action: &Action, sandbox: &Sandbox) -> Option<&BpfProgram> {
        self.filters.get(&filter_key(action, sandbox))
    }

    /// Who an action runs as.
    ///
    /// # Errors
    /// An account or group that this host does not have, or that would give the program more than the
    /// catalogue shows.
    pub fn identity(&self, action: &Action) -> Result<Identity, String> {
        if self.same_user {
            return Ok(self.own_identity());
        }
        let run_as = action.run_as();
        let account = self.users.account(run_as).ok_or_else(|| {
            format!("the account `{run_as}` (run_as) is not in /etc/passwd: create it, or name another")
        })?;
        let mut identity = Identity {
            name: account.name,
            uid: account.uid,
            gid: account.gid,
            groups: Vec::new(),
            absent: Vec::new(),
        };
        for declared in &action.groups {
            let (name, optional) = Sandbox::optional_path(declared);
            match self.users.group(name).or_else(|| number(name)) {
                Some(gid) => identity.groups.push(gid),
                None if optional => identity.absent.push(format!("group {name}")),
                None => {
                    return Err(format!(
                        "the group `{name}` is not in /etc/group; write \"?{name}\" where it may be absent"
                    ));
                }
            }
        }
        self.refuse_dangerous(action, &identity)?;
        Ok(identity)
    }

    fn own_identity(&self) -> Identity {
        let (uid, gid) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
        let name = self.users.by_uid(uid).map_or_else(|| uid.to_string(), |account| account.name.clone());
        Identity { name, uid, gid, groups: Vec::new(), absent: Vec::new() }
    }

    fn refuse_dangerous(&self, action: &Action, identity: &Identity) -> Result<(), String> {
        let all = identity.all_groups();
        let (daemon_uid, daemon_gid) = self.daemon;
        if identity.uid == daemon_uid || all.contains(&daemon_gid) {
            return Err(format!(
                "`{}` is the daemon's account or in its group: a program could speak to the helper in its name",
                identity.name
            ));
        }
        let has_unix = action.sandboxes().iter().any(|sandbox| sandbox.network.has_unix());
        if !has_unix || (action.risk == Risk::Dangerous && action.host_root) {
            return Ok(());
        }
        // The catalogue's own check knows names only; here numbers have become accounts and groups.
        let root_group =
            all.iter().flat_map(|gid| self.users.group_names(*gid)).find(|name| is_root_group(name));
        let power = match root_group {
            _ if identity.uid == 0 => "root".to_owned(),
            Some(group) => format!("group {group}"),
            None => return Ok(()),
        };
        Err(format!(
            "unix sockets as {power} are as good as root on this host; take another account, or say \
             `risk: dangerous` and `host_root: true`"
        ))
    }
}

fn warnings(catalog: &Catalog) -> Vec<String> {
    let interpreting = catalog.actions.iter().filter(|action| action.allow_interpreter);
    interpreting
        .map(|action| {
            format!(
                "`{}` may run an interpreter (allow_interpreter): whatever text reaches it runs",
                action.name
            )
        })
        .collect()
}

fn filter_key(action: &Action, sandbox: &Sandbox) -> FilterKey {
    FilterKey {
        network: sandbox.network.clone(),
        groups: sandbox.syscalls.clone(),
        children: !sandbox.exec.is_empty(),
        writes: !sandbox.write.is_empty(),
        executable: executable_number(action),
    }
}

/// The descriptor that the executable sits at: exactly the run's RLIMIT_NOFILE, which no later descriptor
/// can reach.
pub fn executable_number(action: &Action) -> u32 {
    u32::try_from(action.limits.open_files()).unwrap_or(u32::MAX)
}
