#!/usr/bin/env bash
# Lays out everything that gloveport installs below DIR. Both packages are made of this one tree, so neither
# can hold what the other lacks.
#
#   packaging/stage.sh DIR      the programs come from the release profile of the target directory
#
# The owners and the few modes that are not 0644 and 0755 are set by the packages, from docs/install.md's table.
set -eu
destination=$(realpath -m "${1:?where to}")
cd "$(dirname "$0")/.."
programs=${CARGO_TARGET_DIR:-target}/${PROFILE:-release}

# put MODE SOURCE… DIRECTORY
put() {
    local mode=$1 directory=${!#}
    install -D -m "$mode" -t "$destination/$directory" "${@:2:$#-2}"
}

rm -rf "$destination"
put 0755 "$programs/gloveport" usr/bin
put 0755 "$programs/gloveportd" "$programs/gloveport-helper" "$programs/gloveport-handler" usr/libexec/gloveport
for program in "$destination"/usr/bin/* "$destination"/usr/libexec/gloveport/*; do
    # What a debugger wants is not worth its size here; a build without it is one command away.
    strip --strip-unneeded --remove-section=.comment "$program"
    packaging/dependencies.py "$program"
done

put 0644 systemd/*.service systemd/*.socket systemd/*.slice usr/lib/systemd/system
put 0644 packaging/sysusers/gloveport.conf usr/lib/sysusers.d
put 0644 packaging/tmpfiles/gloveport.conf usr/lib/tmpfiles.d

put 0644 packaging/daemon.toml etc/gloveport
install -d -m 0755 "$destination/etc/gloveport/catalog.d"
install -d -m 0700 "$destination/etc/gloveport/credentials"
for catalog in packaging/catalogs/*; do
    put 0644 "$catalog"/* "usr/share/gloveport/catalogs/${catalog##*/}"
done

for page in packaging/man/*.[158]; do
    put 0644 "$page" "usr/share/man/man${page##*.}"
done
packaging/catalog-page.py docs/catalog-reference.md >"$destination/usr/share/man/man5/gloveport-catalog.5"
put 0644 packaging/completions/gloveport usr/share/bash-completion/completions
put 0644 packaging/completions/_gloveport usr/share/zsh/site-functions
put 0644 packaging/completions/gloveport.fish usr/share/fish/vendor_completions.d
put 0644 README.md SECURITY.md CHANGELOG.md ARCHITECTURE.md docs/*.md usr/share/doc/gloveport
put 0644 helper/AUDIT.md helper/crates.txt usr/share/doc/gloveport/helper
put 0644 docs/examples/* usr/share/doc/gloveport/examples
# docs/ is this directory here: no link may lead into one below it.
sed -i 's#](docs/#](#g' "$destination"/usr/share/doc/gloveport/*.md
