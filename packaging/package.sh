#!/usr/bin/env bash
# Makes the .deb and the .rpm of what is built, in dist/ or in the directory that is named.
#
#   packaging/package.sh [DIRECTORY]
#
# Two builds of the same sources are the same bytes: all times are those of the newest entry of the changelog.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "${1:-dist}"
dist=$(realpath "${1:-dist}")
work=$(realpath -m "${CARGO_TARGET_DIR:-target}")/package
here=$PWD

fail() { printf 'package: %s\n' "$*" >&2; exit 1; }
for command in dh rpmbuild fakeroot objcopy; do
    command -v "$command" >/dev/null || fail "$command is missing; packaging/prerequisites.sh test installs it"
done

# Tests of several processes want the packages at once.
mkdir -p "$work"
exec 9>"$work/lock"
flock 9

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
export SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(date -d "$(sed -n 's/^ -- .*>  //p' packaging/debian/changelog | head -1)" +%s)
export TZ=UTC LC_ALL=C
umask 022

# Nothing is made twice of the same files.
programs=${CARGO_TARGET_DIR:-target}/${PROFILE:-release}
stamp=$(find "$programs"/gloveport{,d,-helper,-handler} Cargo.lock ./*.md docs helper/AUDIT.md helper/crates.txt packaging systemd -type f -print0 | sort -z |
    xargs -0 sha256sum | sha256sum)
[ "$(cat "$dist/.stamp" 2>/dev/null)" = "$stamp" ] && exit

export STAGE=$work/stage
packaging/stage.sh "$STAGE"
install -m 0644 packaging/apparmor/usr.libexec.gloveport.gloveportd "$work/apparmor"
find "$STAGE" "$work/apparmor" -exec touch --date="@$SOURCE_DATE_EPOCH" {} +

rm -f "$dist"/*.deb "$dist"/*.rpm "$dist/.stamp"

# debhelper works in a directory with a debian/ and leaves what it made beside it.
rm -rf "$work/deb" "$work/rpm"
mkdir -p "$work/deb/gloveport-$version" "$work/rpm"
cp -a packaging/debian "$work/deb/gloveport-$version"
(cd "$work/deb/gloveport-$version" && fakeroot debian/rules binary) >"$work/deb.log" 2>&1 ||
    fail "debhelper failed; its words: $work/deb.log"
mv "$work/deb"/*.deb "$dist"

rpmbuild --quiet -bb --define "_topdir $work/rpm" --define "_rpmdir $dist" --define '_rpmfilename %{name}-%{version}-%{release}.%{arch}.rpm' \
    --define "version_of_sources $version" --define "stage $STAGE" \
    "$here/packaging/rpm/gloveport.spec" >"$work/rpm.log" 2>&1 || fail "rpmbuild failed; its words: $work/rpm.log"

printf '%s\n' "$stamp" >"$dist/.stamp"
