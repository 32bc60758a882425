//! The .rpm, as far as a Debian root can show it: its scriptlets run in a chroot, without a running systemd and
//! without Fedora's own dependencies. What a booted Fedora would do is not shown here.

use super::{output_of, packages};
use gloveport_tests::programs;
use std::process::Command;

/// The root is prepared as for a machine, and every `rpm` works below it.
const BEGIN: &str = r#"
set -eu
root=$1 place=$2 package=$3
mkdir -p "$place/upper" "$place/work" "$place/root"
mount -t overlay overlay -o "lowerdir=$root,upperdir=$place/upper,workdir=$place/work" "$place/root"
cd "$place/root"
mount -t proc proc proc
r() { rpm --root "$place/root" --dbpath /var/lib/rpm "$@"; }
fail() { echo "$*" >&2; exit 1; }
"#;

fn in_a_root(name: &str, script: &str) -> String {
    let root = output_of("packaging/test-root.sh", &[]);
    let place = programs::target().join(format!("machines/rpm-{name}-{}", std::process::id()));
    let output = Command::new("unshare")
        .args([
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            &format!("{BEGIN}{script}"),
            "rpm",
            root.trim(),
        ])
        .arg(&place)
        .arg(packages::built().rpm)
        .output()
        .expect("unshare");
    std::fs::remove_dir_all(&place).expect("removing a root");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    said
}

#[test]
fn an_installed_rpm_has_its_accounts_owners_key_and_catalogue() {
    let said = in_a_root(
        "install",
        r#"
r -i --nodeps "$package"
grep -q '^gloveport:' etc/passwd && grep -q '^gloveport-run:' etc/passwd || fail "no accounts"
owner=$(chroot . stat -c '%a %U:%G' /etc/gloveport/daemon.toml)
[ "$owner" = "640 root:gloveport" ] || fail "daemon.toml: $owner"
[ "$(chroot . stat -c '%a %U:%G' /etc/gloveport/credentials)" = "700 root:root" ] || fail "credentials are open"
[ "$(chroot . stat -c '%a' /etc/gloveport/host_key)" = 600 ] || fail "the key is open"
chroot . /usr/libexec/gloveport/gloveport-helper --check
[ ! -e etc/gloveport/tokens.json ] || fail "somebody has been given a token"
[ -z "$(find etc/systemd -name '*gloveport*')" ] || fail "it is enabled"
r -V --nodeps gloveport || fail "it differs from the package"
"#,
    );
    assert!(said.contains("execute_command: new action"), "what is permitted is shown: {said}");
    assert!(said.contains("systemctl enable --now gloveport"), "the next step is named: {said}");
}

#[test]
fn an_rpm_keeps_changed_settings_and_its_removal_keeps_keys_and_records() {
    let said = in_a_root(
        "remove",
        r#"
r -i --nodeps "$package"
echo 'max_sessions = 17' >>etc/gloveport/daemon.toml
key=$(sha256sum etc/gloveport/host_key)
r -V --nodeps gloveport | grep -q '^S.5....T\. *c /etc/gloveport/daemon.toml' || fail "a changed file is not seen"
r -U --force --nodeps "$package"
grep -q 'max_sessions = 17' etc/gloveport/daemon.toml || fail "a changed file was replaced"
[ "$(sha256sum etc/gloveport/host_key)" = "$key" ] || fail "an upgrade made a new key"
touch var/log/gloveport/audit.jsonl
r -e --nodeps gloveport
[ ! -e usr/bin/gloveport ] || fail "a program is left"
grep -q 'max_sessions = 17' etc/gloveport/daemon.toml.rpmsave || fail "changed settings are lost"
[ -e etc/gloveport/host_key ] && [ -e var/log/gloveport/audit.jsonl ] || fail "key or records are lost"
"#,
    );
    assert!(said.contains("catalogue in force is unchanged"), "an upgrade permits nothing new: {said}");
}
