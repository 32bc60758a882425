#![forbid(unsafe_code)]
//! What a run is promised, and what on this kernel keeps each promise.
//!
//! A promise names what can keep it; a Landlock ABI alone would not do: under ABI 2 a ruleset without write
//! rights still lets truncate(2) empty a file. Pure, so that every ABI can be tried on any kernel, and every
//! catalogue on every ABI.

use crate::catalog::{NetworkClass, Promise, Sandbox};

/// The newest Landlock ABI that rulesets are built for. A newer kernel is asked for these rights, all of them.
pub const NEWEST_ABI: u32 = 9;

/// What decides about promises beside the sandbox itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ground {
    /// The Landlock ABI that rulesets are built for; 0: none.
    pub abi: u32,
    /// Whether the guard page of one-shot exec could be mapped above page 0.
    pub guard_page: bool,
}

/// The judgement about one sandbox.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Promises that it goes without, because the signed action says that it may.
    pub lacking: Vec<Promise>,
    /// Promises that nothing keeps, with what would. The run is refused.
    pub broken: Vec<(Promise, &'static str)>,
}

/// Which promises are kept on this ground.
pub fn judge(sandbox: &Sandbox, ground: Ground) -> Verdict {
    let table = [
        (Promise::Landlock, ground.abi >= 1, "Landlock: Linux 5.13 with `landlock` in lsm="),
        // ABI 1 and 2 have no right for truncation; there the filter refuses it.
        (Promise::NoWrite, ground.abi >= 1, "Landlock: Linux 5.13 with `landlock` in lsm="),
        (Promise::ConnectPorts, !needs_ports(sandbox) || ground.abi >= 4, "Landlock ABI 4: Linux 6.7"),
        (
            Promise::AbstractSockets,
            !sandbox.network.has_unix() || ground.abi >= 6,
            "Landlock ABI 6: Linux 6.12, or an action without `network: [unix]`",
        ),
        (
            Promise::Signals,
            ground.abi >= 6 || own_signals_only(sandbox, ground.abi),
            "Landlock ABI 6: Linux 6.12",
        ),
        // Below ABI 5 the filter passes a few harmless requests only.
        (Promise::Ioctl, true, ""),
        (
            Promise::OneShotExec,
            !sandbox.exec.is_empty() || ground.guard_page,
            "the sysctl vm.mmap_min_addr above 0",
        ),
    ];
    let mut verdict = Verdict::default();
    for (promise, kept, remedy) in table {
        match (kept, sandbox.may_lack.contains(&promise)) {
            (true, _) => {}
            (false, true) => verdict.lacking.push(promise),
            (false, false) => verdict.broken.push((promise, remedy)),
        }
    }
    verdict
}

/// Whether the filter holds signals, because Landlock does not: then a process signals itself and its group
/// only. An action that may lack the promise is spared that.
pub fn own_signals_only(sandbox: &Sandbox, abi: u32) -> bool {
    abi < 6 && !sandbox.may_lack.contains(&Promise::Signals)
}

/// Whether only a Landlock port rule keeps TCP to what is declared. `dns` below ABI 4 is without TCP instead.
fn needs_ports(sandbox: &Sandbox) -> bool {
    let ports = |class: &NetworkClass| matches!(class, NetworkClass::Connect(_) | NetworkClass::Bind(_));
    sandbox.network.classes().iter().any(ports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Network;

    fn broken(sandbox: &Sandbox, abi: u32, guard_page: bool) -> Vec<Promise> {
        judge(sandbox, Ground { abi, guard_page }).broken.into_iter().map(|(p, _)| p).collect()
    }

    fn with(classes: Vec<NetworkClass>) -> Sandbox {
        Sandbox { network: Network::Classes(classes), ..Sandbox::default() }
    }

    #[test]
    fn every_abi_keeps_what_it_can_and_nothing_more() {
        use Promise::{AbstractSockets, ConnectPorts, Landlock, NoWrite};
        let plain = Sandbox::default();
        let unix = with(vec![NetworkClass::Unix]);
        let web = with(vec![NetworkClass::Dns, NetworkClass::Connect(vec![443])]);
        let dns = with(vec![NetworkClass::Dns]);
        for abi in 0..=NEWEST_ABI {
            let mut expected = Vec::new();
            if abi < 1 {
                expected.extend([Landlock, NoWrite]);
            }
            let for_plain = expected.clone();
            let mut for_web = expected.clone();
            let mut for_unix = expected.clone();
            if abi < 4 {
                for_web.push(ConnectPorts);
            }
            if abi < 6 {
                for_unix.push(AbstractSockets);
            }
            assert_eq!(broken(&plain, abi, true), for_plain, "ABI {abi}");
            assert_eq!(broken(&dns, abi, true), for_plain, "ABI {abi}");
            assert_eq!(broken(&web, abi, true), for_web, "ABI {abi}");
            assert_eq!(broken(&unix, abi, true), for_unix, "ABI {abi}");
        }
    }

    #[test]
    fn signals_are_held_by_the_filter_where_landlock_does_not_hold_them() {
        let plain = Sandbox::default();
        assert_eq!((own_signals_only(&plain, 5), own_signals_only(&plain, 6)), (true, false));
        let free = Sandbox { may_lack: vec![Promise::Signals], ..Sandbox::default() };
        assert!(!own_signals_only(&free, 5));
        assert_eq!(judge(&free, Ground { abi: 5, guard_page: true }).lacking, [Promise::Signals]);
        assert_eq!(judge(&free, Ground { abi: 6, guard_page: true }).lacking, []);
    }

    #[test]
    fn a_declared_child_needs_no_guard_page() {
        assert_eq!(broken(&Sandbox::default(), 7, false), [Promise::OneShotExec]);
        let children = Sandbox { exec: vec!["/usr/bin/dpkg-query".into()], ..Sandbox::default() };
        assert_eq!(broken(&children, 7, false), []);
    }

    #[test]
    fn what_may_be_lacking_is_listed_and_not_refused() {
        let sandbox = Sandbox { may_lack: vec![Promise::Signals, Promise::Landlock], ..Sandbox::default() };
        let verdict = judge(&sandbox, Ground { abi: 0, guard_page: true });
        assert_eq!(verdict.lacking, [Promise::Landlock, Promise::Signals]);
        assert_eq!(verdict.broken.iter().map(|(p, _)| *p).collect::<Vec<_>>(), [Promise::NoWrite]);
    }
}
