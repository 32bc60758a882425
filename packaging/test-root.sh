#!/usr/bin/env bash
# Makes the root file system that the packages are tested in, and prints where it lies.
#
# A minimal system of this host's own distribution and release, so that what was linked here runs there, with
# systemd and what the package depends on. It is kept below the target directory until the list or the
# release changes, and every test works on a layer of its own above it. About a minute, once.
set -eu
cd "$(dirname "$0")/.."

# systemd and its friends; ssh-keygen, which the package depends on; and what the ready catalogues call.
PACKAGES=systemd,systemd-sysv,dbus,udev,libpam-systemd,procps,iproute2,openssh-client,iputils-ping,bind9-dnsutils,pciutils,rpm,dnf

fail() { printf 'test-root: %s\n' "$*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "a root file system is made by root"
# systemd-nspawn boots it and rpm installs into it, so they are wanted at the same time.
wanted=(mmdebstrap systemd-nspawn rpm)
for command in "${wanted[@]}"; do
    command -v "$command" >/dev/null || fail "$command is missing; packaging/prerequisites.sh test installs it"
done

. /etc/os-release
[ -n "${VERSION_CODENAME-}" ] || fail "${PRETTY_NAME-this system} has no release name: mmdebstrap makes Debian and its kin"
place=$(realpath -m "${CARGO_TARGET_DIR:-target}")/test-roots
root=$place/$(printf '%s %s' "$VERSION_CODENAME" "$PACKAGES" | sha256sum | cut -c1-16)
mkdir -p "$place"

# Two callers want it at once: a test, and whoever prepares in the background.
exec 9>"$place/lock"
flock 9
if [ ! -d "$root" ]; then
    mmdebstrap --quiet --variant=minbase --include="$PACKAGES" "$VERSION_CODENAME" "$root.new" >&2
    # A name of its own for each machine; nothing of how it was made.
    : >"$root.new/etc/machine-id"
    mv "$root.new" "$root"
fi
printf '%s\n' "$root"
