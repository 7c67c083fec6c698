#!/usr/bin/env bash
# The package's unit under systemd, which is process 1 of a root of Debian 13 in a container of systemd-nspawn without a network: ready, read again, hung and
# started again, stopped. As root, with a Debian mirror.
# BODKIN: a binary that is built already; otherwise that of the debug build. PACKAGING_SERVICE_ROOT: such a root as a tar file, instead of debootstrap's.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")
name=packaging_service
# The first Debian whose systemd knows Type=notify-reload.
codename=trixie
boot_seconds_max=420

skip() { echo "SKIP $name: $1"; exit 0; }
fail() { printf 'not ok - %s\n%s\n' "$name" "$1"; exit 1; }

[[ $(id -u) == 0 ]] || skip "not root, which a container needs"
for tool in debootstrap systemd-nspawn dpkg-deb; do
    command -v "$tool" >/dev/null || skip "no $tool"
done
[[ -e /usr/share/debootstrap/scripts/$codename ]] || skip "debootstrap knows no '$codename'"

place=$(mktemp -d)
trap 'rm -rf --one-file-system "$place"' EXIT
root=$place/root
mkdir "$root"
kept=${PACKAGING_SERVICE_ROOT:-$build_dir/service-root-$codename.tar}
if [[ ! -e $kept ]]; then
    timeout 900 debootstrap --variant=minbase --include=systemd,dbus,procps "$codename" "$root" http://deb.debian.org/debian >"$place/debootstrap.log" 2>&1 ||
        skip "debootstrap makes no root here: $(tail -n 1 "$place/debootstrap.log")"
    mkdir -p "$build_dir"
    tar --create --file "$kept.part" --directory "$root" . && mv "$kept.part" "$kept"
else
    tar --extract --file "$kept" --directory "$root" || fail "the kept root $kept cannot be unpacked: remove it"
fi

package=$(COMPRESSION=none BODKIN=${BODKIN:-$build_dir/debug/bodkin} packaging/deb/build.sh "$place" 2>"$place/build.log" | tail -n 1) || fail "$(cat "$place/build.log")"
cp "$package" "$root/srv/bodkin.deb"
told=$(chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 dpkg --install /srv/bodkin.deb 2>&1) || fail "$told"

# What is seen from inside, a line each: a word, and what there is to say of it.
cat >"$root/srv/probe" <<'PROBE'
#!/bin/bash
property() { systemctl show bodkin --property="$1" --value; }
tell() { echo "$*" >>/srv/seen; }
wait_for() { # SECONDS COMMAND...
    local seconds=$1
    shift
    for ((second = 0; second < seconds; second++)); do
        if "$@"; then return 0; fi
        sleep 1
    done
    return 1
}
is_another() { [[ $(property ActiveState) == active && $(property MainPID) != "$1" ]]; }
tell "systemd $(systemctl --version | awk 'NR == 1 {print $2}')"
tell "verify $(systemd-analyze verify --man=no bodkin.service 2>&1 | grep --count bodkin)"
tell "exposure $(systemd-analyze security bodkin.service --no-pager 2>/dev/null | awk '/Overall exposure/ {print $(NF - 2)}')"
if systemctl start bodkin; then tell "started"; fi
tell "type $(property Type)"
tell "state $(property ActiveState)"
tell "user $(ps --no-headers -o user= --pid "$(property MainPID)")"
tell "credential $(stat --format='%U %a' /run/credentials/bodkin.service/passphrase)"
if grep --quiet 'BEGIN ENCRYPTED PRIVATE KEY' /var/lib/bodkin/trust/cloud.key; then tell "sealed"; fi
tell "directory $(stat --format='%U %a' /var/lib/bodkin)"
if runuser --user bodkin -- bodkin service list --data /var/lib/bodkin | grep --quiet service-register; then tell "serves"; fi
if systemctl reload bodkin; then tell "reloaded $(property ActiveState)"; fi
first=$(property MainPID)
kill -STOP "$first"
if wait_for 150 is_another "$first"; then tell "restarted $(property Result)"; fi
if systemctl stop bodkin; then tell "stopped $(property Result)"; fi
journalctl --unit=bodkin --output=cat >/srv/journal
systemctl poweroff
PROBE
chmod 0755 "$root/srv/probe"
mkdir -p "$root/etc/systemd/system/bodkin.service.d" "$root/etc/systemd/system/multi-user.target.wants"
# The unit's own 30 s are for a machine that is out of breath; who hangs is found the same way.
printf '[Service]\nWatchdogSec=15\n' >"$root/etc/systemd/system/bodkin.service.d/soon.conf"
# As docs/packaging.md has it, but for the encryption: a container has no key for it. The authority is made with it at the first start, and read at the second.
(umask 077 && echo "correct horse" >"$root/srv/passphrase")
printf '[Service]\nLoadCredential=passphrase:/srv/passphrase\nEnvironment=BODKIN_CA_PASSPHRASE_FILE=%%d/passphrase\n' >"$root/etc/systemd/system/bodkin.service.d/credential.conf"
printf '[Unit]\nDescription=Probe\n[Service]\nType=oneshot\nExecStart=/srv/probe\n' >"$root/etc/systemd/system/probe.service"
ln -s ../probe.service "$root/etc/systemd/system/multi-user.target.wants/probe.service"

timeout "$boot_seconds_max" systemd-nspawn --quiet --boot --private-network --register=no --keep-unit --machine="bodkin-test-$$" --directory="$root" </dev/null >"$place/boot.log" 2>&1
[[ -e $root/srv/seen ]] || skip "systemd does not start in a container here: $(tail -n 1 "$place/boot.log")"
seen=$(cat "$root/srv/seen")
all="$seen
$(tail -n 40 "$root/srv/journal" 2>/dev/null)"
for line in "verify 0" started "type notify-reload" "state active" "user bodkin" sealed "directory bodkin 700" serves "reloaded active" "restarted success" "stopped success"; do
    grep --quiet --line-regexp "$line" <<<"$seen" || fail "'$line' was not seen:
$all"
done
exposure=$(awk '/^exposure/ {print $2}' <<<"$seen")
awk -v exposure="$exposure" 'BEGIN {exit !(exposure > 0 && exposure <= 2.0)}' || fail "systemd-analyze security says an exposure of '$exposure', and 2.0 is allowed"
echo "note the unit's exposure is $exposure (systemd-analyze security), under systemd $(awk '/^systemd/ {print $2}' <<<"$seen")"
echo "ok $name"
