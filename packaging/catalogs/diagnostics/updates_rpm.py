"""The packages of which dnf knows a newer version, from the metadata that it fetched last; as JSON."""

import json
import os
import sys

try:
    import dnf
except ImportError:
    sys.exit("python3 of this host has no module `dnf`: only dnf 4 can be asked")

# What dnf keeps for itself, such as its locks, it puts below /var/tmp; here to where it ends with the run.
temporary = os.environ["TMPDIR"]
dnf.yum.misc.getCacheDir = lambda *_, **__: temporary
base = dnf.Base()
conf = base.conf
conf.logdir = conf.persistdir = temporary
conf.read(priority=dnf.conf.PRIO_MAINCONFIG)
# The metadata that root has fetched.
conf.cachedir = "/var/cache/dnf"
# Found by dnf itself where it is the host's own package manager; it must be a text.
conf.substitutions["releasever"] = conf.substitutions["releasever"] or ""
conf.substitutions.update_from_etc(conf.installroot)
base.read_all_repos()
try:
    base.fill_sack_from_repos_in_cache()
except dnf.exceptions.Error as error:
    sys.exit(f"dnf: {error}")
packages = base.sack.query()
installed = {(one.name, one.arch): one.evr for one in packages.installed()}
updates = [
    {
        "name": one.name,
        "arch": one.arch,
        "installed": installed.get((one.name, one.arch)),
        "available": one.evr,
        "repository": one.reponame,
    }
    for one in packages.upgrades().latest()
]
json.dump(sorted(updates, key=lambda one: (one["name"], one["arch"])), sys.stdout, indent=1)
print()
