#!/bin/bash
# What packaging/test-vm.sh has the emulated machine check. Writes a line for each check, and `done`.
exec >/var/log/vm-checks 2>&1
PATH=/usr/sbin:/usr/bin:/sbin:/bin

# check NAME COMMAND…
check() {
    local name=$1
    shift
    if "$@" >/tmp/said 2>&1; then echo "ok   $name"; else echo "FAIL $name"; sed 's/^/     /' /tmp/said; fi
}
call() { GLOVEPORT_URL=http://127.0.0.1:8010/mcp GLOVEPORT_TOKEN=$token gloveport call --json "$@"; }
probe() { call "$1" "{\"params\": {\"words\": [$2]}}"; }
has() { probe "$1" "$2" | tee /dev/stderr | grep -q "$3"; }
answers() { for _ in $(seq 60); do call uptime '{}' && return; sleep 1; done; return 1; }

uname -r
check "it is installed" dpkg --install /root/gloveport.deb
cat >/etc/gloveport/catalog.d/probe.yaml <<'YAML'
name: probe
description: Runs the probe with little memory and few processes.
risk: read
params: {words: {type: list, items: {type: string, allow_dash: true}}}
exec: [/usr/local/bin/gloveport-probe, "{words}"]
timeout: 5s
limits: {processes: 20, memory: 64MiB}
sandbox: {may_lack: [connect_ports]}
---
name: busy
description: Runs the probe with half of one processor.
risk: read
params: {words: {type: list, items: {type: string, allow_dash: true}}}
exec: [/usr/local/bin/gloveport-probe, "{words}"]
timeout: 5s
limits: {processes: 20, cpu_percent: 50}
sandbox: {may_lack: [connect_ports]}
YAML
check "a catalogue of its own is signed" gloveport init --yes
token=$(gloveport token add --name vm --max-risk dangerous)
check "both halves start" systemctl enable --now gloveport
# Its slice lets loopback through where the service denies all.
check "a call over TCP is answered" answers
outside() { ! systemd-run --quiet --wait --property IPAddressDeny=any curl -sf --max-time 5 http://127.0.0.1:8010/healthz; }
inside() {
    systemd-run --quiet --wait --slice gloveport.slice --property IPAddressDeny=any \
        curl -sf --max-time 20 http://127.0.0.1:8010/healthz
}
check "denying all denies loopback too" outside
check "but not in the daemon's slice" inside
check "a run has a cgroup" has probe '"print", "here"' '"cgroup":true'
check "a run that needs too much memory is ended" has probe '"memory", "268435456"' '"killed_by":"memory"'
check "a fork bomb meets its limit and is ended" has probe '"bomb"' '"timed_out":true'
check "nothing of it is left" bash -c '! pgrep gloveport-probe'
# What computes all the time on half of a processor: the kernel counts how often it made it wait.
throttled() {
    probe busy '"bomb"' &
    local run=$! group found=1
    for _ in $(seq 20); do
        sleep 0.2
        for group in /sys/fs/cgroup/system.slice/gloveport-helper.service/runs/*/; do
            grep -q '^50000 100000$' "$group/cpu.max" && grep -q '^nr_throttled [1-9]' "$group/cpu.stat" && found=0
        done
    done
    wait "$run"
    return "$found"
}
check "a run gets no more of the processors than it may" throttled
check "Landlock is in force" has probe '"open", "/usr/bin/env"' 'errno EACCES'
check "a second program does not start" has probe '"exec2", "/usr/bin/true"' 'errno EPERM'
# The machine's clock is its own here. A run that may take 5 s neither ends by a jump ahead nor lives by one back.
jumping() {
    local begun took
    begun=$(cut -d. -f1 /proc/uptime)
    probe probe '"sleep", "20000"' >/tmp/jumped &
    sleep 2 && date --set "+1 hour" && sleep 1 && date --set "-2 hours"
    wait $!
    took=$(($(cut -d. -f1 /proc/uptime) - begun))
    date --set "+1 hour"
    cat /tmp/jumped
    grep -q '"timed_out":true' /tmp/jumped && [ "$took" -ge 5 ] && [ "$took" -le 20 ]
}
check "a clock that jumps changes no deadline" jumping
check "the record is whole" gloveport audit verify
doctor() { gloveport doctor; [ $? -lt 2 ]; }
check "doctor finds nothing that does not work" doctor
systemd-analyze --no-pager time | head -1
resident() { awk '/^VmRSS/ {print $2 " KiB"}' "/proc/$(systemctl show --property MainPID --value "$1")/status"; }
echo "resident: daemon $(resident gloveport), helper $(resident gloveport-helper)"
echo done
