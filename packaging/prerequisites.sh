#!/usr/bin/env bash
# Installs what is missing, and says what it does.
#
#   packaging/prerequisites.sh run     what `make run` needs: a linker, ssh-keygen
#   packaging/prerequisites.sh tools   cargo-nextest and cargo-deny
#   packaging/prerequisites.sh test    what the suites need: ordinary programs, servers, MCP clients
#   packaging/prerequisites.sh bench   what `make bench` compares with
#   packaging/prerequisites.sh fuzz    cargo-fuzz, and the compiler that its engine needs
#   packaging/prerequisites.sh package what `make package` needs
#   packaging/prerequisites.sh users   the two system users
#
# Programs come from the distribution, Python clients from PyPI into virtual environments and Node clients
# from npm; both live under the target directory and are kept until the files that list them change.
set -eu
cd "$(dirname "$0")/.."

TARGET=${CARGO_TARGET_DIR:-target}
CLIENTS=tests/clients

# command: Debian's package: Fedora's package. A missing command means its package is installed; where a
# distribution has none (-), the tests that need it are for the other one.
RUN_TABLE='
cc:                 gcc:                  gcc
ssh-keygen:         openssh-client:       openssh-clients
'
TOOLS_TABLE='
python3:            python3:              python3
'
TEST_TABLE='
apparmor_parser:    apparmor:             -
dig:                bind9-dnsutils:       bind-utils
file:               file:                 file
git:                git:                  git-core
ip:                 iproute2:             iproute
lintian:            lintian:              -
lsblk:              util-linux:           util-linux
man:                man-db:               man-db
mandoc:             mandoc:               mandoc
mariadbd-safe:      mariadb-server:       mariadb-server
mariadb:            mariadb-client-core:  mariadb
mmdebstrap:         mmdebstrap:           -
nginx:              nginx-light:          nginx
npm:                npm:                  nodejs-npm
openssl:            openssl:              openssl
ping:               iputils-ping:         iputils
ps:                 procps:               procps-ng
redis-server:       redis-server:         redis
rpm:                rpm:                  rpm
rpmlint:            rpmlint:              rpmlint
sshd:               openssh-server:       openssh-server
strace:             strace:               strace
systemd-analyze:    systemd:              systemd
systemd-nspawn:     systemd-container:    systemd-container
traceroute:         traceroute:           traceroute
'
BENCH_TABLE='
bwrap:              bubblewrap:           bubblewrap
gzip:               gzip:                 gzip
ip:                 iproute2:             iproute
rg:                 ripgrep:              ripgrep
runuser:            util-linux:           util-linux
sshd:               openssh-server:       openssh-server
sudo:               sudo:                 sudo
'
FUZZ_TABLE='
g++:                g++:                  gcc-c++
'
PACKAGE_TABLE='
dh:                 debhelper:            debhelper
dh_apparmor:        dh-apparmor:          -
fakeroot:           fakeroot:             fakeroot
objcopy:            binutils:             binutils
rpmbuild:           rpm:                  rpm-build
'

say() { printf '    %s\n' "$*"; }
fail() { printf 'prerequisites: %s\n' "$*" >&2; exit 1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else fail "this needs root and there is no sudo; run as root: $*"
    fi
}

# A host may have both: the one that its system is made with comes first on Debian and its kin.
if command -v apt-get >/dev/null; then MANAGER=apt
elif command -v dnf >/dev/null; then MANAGER=dnf
else MANAGER=none
fi

install_packages() {
    say "installing from the distribution: $*"
    case $MANAGER in
    apt)
        as_root apt-get -qq -o DPkg::Lock::Timeout=300 update
        # At run level 1 no package starts its service: only the programs are wanted.
        as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -qq -y \
            -o DPkg::Lock::Timeout=300 install --no-install-recommends "$@" >/dev/null
        ;;
    dnf)
        as_root dnf -q -y --setopt=install_weak_deps=False install "$@" >/dev/null
        ;;
    *) fail "neither apt-get nor dnf is here; install by hand: $*" ;;
    esac
}

# install_missing TABLE: the packages of those commands that are not in PATH, in one go.
install_missing() {
    local missing=() command debian fedora package
    while IFS=: read -r command debian fedora; do
        [ -n "$command" ] || continue
        # System directories are searched too: ip and ping may live where a user's PATH does not lead.
        PATH=$PATH:/usr/sbin:/sbin command -v "$command" >/dev/null && continue
        package=$debian
        if [ $MANAGER = dnf ]; then package=$fedora; fi
        package=${package// /}
        if [ "$package" != - ]; then missing+=("$package"); fi
    done <<<"$1"
    if [ ${#missing[@]} -gt 0 ]; then install_packages "${missing[@]}"; fi
}

# virtual_environment NAME: the packages of requirements-NAME.txt in $TARGET/clients/NAME.
virtual_environment() {
    local place=$TARGET/clients/$1 list=$CLIENTS/requirements-$1.txt stamp
    stamp=$(sha256sum "$list" | cut -d' ' -f1)
    [ "$(cat "$place/stamp" 2>/dev/null)" = "$stamp" ] && return
    say "installing from PyPI: $(grep -v '^#' "$list" | wc -l) packages of $list"
    rm -rf "$place"
    python3 -m venv "$place"
    "$place/bin/pip" --quiet --disable-pip-version-check install --requirement "$list"
    echo "$stamp" >"$place/stamp"
}

# node_modules: the Node clients, and the Node that runs them, in $TARGET/clients/node. The scripts are linked
# there, for Node looks for modules beside the script.
node_modules() {
    local place=$TARGET/clients/node stamp
    stamp=$(sha256sum "$CLIENTS/package-lock.json" | cut -d' ' -f1)
    [ "$(cat "$place/stamp" 2>/dev/null)" = "$stamp" ] && return
    say "installing from npm: the packages of $CLIENTS/package-lock.json"
    rm -rf "$place"
    mkdir -p "$place"
    cp "$CLIENTS/package.json" "$CLIENTS/package-lock.json" "$place"
    npm --prefix "$place" ci --silent --no-audit --no-fund
    ln -s "$PWD/$CLIENTS" "$place/scripts"
    echo "$stamp" >"$place/stamp"
}

rust() {
    command -v cargo >/dev/null && return
    fail "cargo is missing. Install Rust 1.89 or newer, as https://rustup.rs describes"
}

tools() {
    install_missing "$TOOLS_TABLE"
    # Debian splits the module that makes virtual environments from python3; Fedora does not.
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        if [ $MANAGER = dnf ]; then install_packages python3-libs; else install_packages python3-venv; fi
    fi
    virtual_environment tools
}

# cargo_fuzz: built once, into the target directory. A stable toolchain serves: see tests/fuzz.sh.
cargo_fuzz() {
    [ -x "$TARGET/fuzz/bin/cargo-fuzz" ] && return
    say "installing from crates.io: cargo-fuzz"
    cargo install --quiet --locked --version 0.13.2 --root "$TARGET/fuzz" cargo-fuzz
}

# system_user NAME PURPOSE
system_user() {
    getent passwd "$1" >/dev/null && return
    say "creating the system user $1: $2"
    as_root useradd --system --user-group --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin --comment "gloveport, $2" "$1"
}

case ${1-} in
run)
    rust
    install_missing "$RUN_TABLE"
    ;;
tools)
    rust
    tools
    ;;
bench)
    tools
    install_missing "$RUN_TABLE$BENCH_TABLE"
    virtual_environment fastmcp-ufo
    ;;
fuzz)
    rust
    install_missing "$RUN_TABLE$FUZZ_TABLE"
    cargo_fuzz
    ;;
package)
    install_missing "$PACKAGE_TABLE"
    ;;
test)
    tools
    install_missing "$RUN_TABLE$TEST_TABLE$PACKAGE_TABLE"
    # That one is of Debian's making.
    if command -v mmdebstrap >/dev/null; then
        say "the root file system that the packages are tested in: $(packaging/test-root.sh)"
    fi
    for list in "$CLIENTS"/requirements-*.txt; do
        name=${list##*/requirements-}
        virtual_environment "${name%.txt}"
    done
    node_modules
    ;;
users)
    system_user gloveport "the daemon"
    system_user gloveport-run "what it runs"
    ;;
*)
    fail "say what for: run, tools, test, bench, fuzz, package or users"
    ;;
esac
