#!/usr/bin/env bash
# Installs the .deb in an emulated machine with a stock kernel of the distribution, and checks there what a
# container cannot show: limits of memory and processes by cgroup, and which networks systemd lets the daemon use.
#
# About two minutes, and five the first time. Nothing else calls it: it is emulated in software, and slow.
set -eu
cd "$(dirname "$0")/.."
here=$PWD
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$target/vm

PACKAGES=systemd,systemd-sysv,dbus,udev,procps,iproute2,openssh-client,curl,linux-image-cloud-amd64,initramfs-tools

fail() { printf 'test-vm: %s\n' "$*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "a file system image is made by root"
[ "$(uname -m)" = x86_64 ] || fail "the emulated machine is an x86-64 one, with this host's programs in it"
for command in qemu-system-x86_64 mmdebstrap mke2fs debugfs; do
    command -v "$command" >/dev/null ||
        fail "$command is missing; on Debian: apt-get install qemu-system-x86 qemu-utils mmdebstrap e2fsprogs"
done

. /etc/os-release
root=$work/root-$(printf '%s %s' "$VERSION_CODENAME" "$PACKAGES" | sha256sum | cut -c1-16)
mkdir -p "$work"
if [ ! -d "$root" ]; then
    echo "    making a root with a kernel, once" >&2
    mmdebstrap --quiet --variant=minbase --include="$PACKAGES" "$VERSION_CODENAME" "$root.new"
    mv "$root.new" "$root"
fi

packaging/package.sh "$target/packages"
install -D -m 0644 "$target"/packages/*.deb "$root/root/gloveport.deb"
install -D -m 0755 "$target/release/gloveport-probe" "$root/usr/local/bin/gloveport-probe"
install -D -m 0755 "$here/packaging/vm-checks.sh" "$root/usr/local/sbin/vm-checks"
cat >"$root/etc/systemd/system/vm-checks.service" <<'UNIT'
[Service]
ExecStart=/usr/local/sbin/vm-checks
ExecStopPost=/usr/bin/systemctl poweroff --force
UNIT
install -d "$root/etc/systemd/system/multi-user.target.wants"
ln -sf ../vm-checks.service "$root/etc/systemd/system/multi-user.target.wants"

image=$work/image
rm -f "$image"
mke2fs -q -t ext4 -d "$root" "$image" 1500M
timeout 600 qemu-system-x86_64 -accel tcg,thread=multi -smp 2 -m 2048 -nographic -no-reboot -nic none \
    -kernel "$root"/boot/vmlinuz-* -initrd "$root"/boot/initrd.img-* -drive "file=$image,format=raw,if=virtio" \
    -append "root=/dev/vda rw console=ttyS0 quiet systemd.mask=serial-getty@ttyS0.service" \
    </dev/null >"$work/console" 2>&1 || fail "the machine did not end by itself; its words: $work/console"

debugfs -R 'cat /var/log/vm-checks' "$image" 2>/dev/null >"$work/result"
cat "$work/result"
grep -q '^done$' "$work/result" || fail "the checks did not come to their end; the machine's words: $work/console"
! grep -q '^FAIL' "$work/result" || fail "something is not as it should be"
