#!/usr/bin/env bash
# The Debian package on a clean root: installed by dpkg on what debootstrap makes, run as its user, opened by a browser of this machine, removed and purged. In between a user
# of that root who has just come follows the tutorial and how-to pages, as they are written. As root, with a Debian mirror.
# BODKIN: a binary that is built already; otherwise that of the debug build. PACKAGING_CLEAN_ROOT: such a root as a tar file, instead of debootstrap's.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")
name=packaging_clean_root
fetch_attempts=2
ready_seconds_max=60
pages_seconds_max=540
browser_seconds_max=240
failed=0

skip() { echo "SKIP $name: $1"; exit 0; }
fail() { printf 'not ok - %s\n%s\n' "$name" "$1"; exit 1; }

[[ $(id -u) == 0 ]] || skip "not root, which debootstrap needs"
command -v debootstrap >/dev/null || skip "no debootstrap"
command -v dpkg-deb >/dev/null || skip "no dpkg-deb"
# shellcheck disable=SC1091
codename=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
[[ -e /usr/share/debootstrap/scripts/$codename ]] || skip "debootstrap knows no '$codename'"

place=$(mktemp -d)
cloud=
# shellcheck disable=SC2317
end() {
    if [[ -n $cloud ]]; then kill -9 "$cloud" 2>/dev/null; fi
    rm -rf --one-file-system "$place"
}
trap end EXIT

# The clean root is the same each time, and takes a minute to make: it is kept beside what was built.
root=$place/root
# curl is what the tutorial takes beside Bodkin.
kept=${PACKAGING_CLEAN_ROOT:-$build_dir/clean-root-$codename-curl.tar}
mkdir "$root"
if [[ ! -e $kept ]]; then
    for ((attempt = 1; attempt <= fetch_attempts; attempt++)); do
        rm -rf --one-file-system "$root"
        if timeout 600 debootstrap --variant=minbase --include=curl,ca-certificates "$codename" "$root" >"$place/debootstrap.log" 2>&1; then
            tar --create --file "$kept.part" --directory "$root" . && mv "$kept.part" "$kept"
            break
        fi
    done
    [[ -e $kept ]] || skip "debootstrap makes no root here: $(tail -n 1 "$place/debootstrap.log")"
else
    tar --extract --file "$kept" --directory "$root" || fail "the kept root $kept cannot be unpacked: remove it"
fi

package=$(COMPRESSION=none BODKIN=${BODKIN:-$build_dir/debug/bodkin} packaging/deb/build.sh "$place" 2>"$place/build.log" | tail -n 1) || fail "$(cat "$place/build.log")"
cp "$package" "$root/tmp/bodkin.deb"
in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }

told=$(in_root dpkg --install /tmp/bodkin.deb 2>&1) || fail "$told"
in_root getent passwd bodkin >/dev/null || fail "the package has made no user: $told"
[[ $(stat --format=%a "$root/usr/bin/bodkin") == 755 ]] || fail "everybody may start bodkin, and nobody change it"
in_root bodkin --version | grep --quiet '^bodkin ' || fail "it does not start: $(in_root bodkin --version 2>&1)"
for file in usr/lib/systemd/system/bodkin.service usr/lib/sysusers.d/bodkin.conf usr/share/bash-completion/completions/bodkin usr/share/man/man1/bodkin-up.1.gz \
    usr/share/doc/bodkin/README.md usr/share/doc/bodkin/docs/tutorial.md usr/share/doc/bodkin/docs/monitoring/alerts.yml etc/bodkin/bodkin.toml; do
    [[ -e $root/$file ]] || fail "$file is not there"
done
# The documentation lies as in the tree: what a page links is there.
broken=
while IFS=: read -r page link; do
    [[ -e $root/usr/share/doc/bodkin/$(dirname "$page")/$link ]] || broken+="$page: $link"$'\n'
done < <(cd "$root/usr/share/doc/bodkin" && grep --recursive --only-matching --extended-regexp --include='*.md' '\]\([^):# ]+' . | sed 's/](//' | grep --invert-match --extended-regexp ':https?$')
[[ -z $broken ]] || fail "links of the installed documentation lead nowhere:
$broken"
grep --quiet '^Of .*rustls ' < <(gzip --decompress --stdout "$root/usr/share/doc/bodkin/third-party.gz") || fail "the licences of what is inside are not there"
grep --quiet bodkin.toml "$root/var/lib/dpkg/info/bodkin.conffiles" || fail "the configuration is no conffile: an upgrade would take the operator's changes away"

# What systemd's StateDirectory= makes.
in_root install --directory --owner=bodkin --group=bodkin --mode=0700 /var/lib/bodkin

# A user who is new here. The service's folder is not his, so that his clouds are in the folders where he starts them.
in_root useradd --create-home --shell /bin/bash newcomer || fail "the root takes no user"
pages=(the_tutorial_is_as_it_says a_graph_is_as_its_page_says a_reliable_pair_is_as_its_page_says two_clouds_are_as_their_page_says the_move_from_the_java_systems_is_as_its_page_says)
# One after the other, as one reader goes through them: side by side they hold a Backup without real-time threads up for longer than its lease.
if ! command -v cargo >/dev/null; then
    echo "SKIP packaging_pages: no cargo, which compares what is printed with the pages"
elif told=$(PACKAGING_ROOT="$root" timeout "$pages_seconds_max" cargo test --locked --workspace --test cloud -- --test-threads 1 --exact "${pages[@]/#/pages::}" 2>&1); then
    grep --quiet "^test result: ok. ${#pages[@]} passed" <<<"$told" || fail "not all pages were followed: $told"
    echo "ok packaging_pages"
else
    printf '%s\nnot ok packaging_pages\n' "$told"
    failed=1
fi

# Held until this ends.
coproc ports { perl packaging/test/held_offset.pl; }
read -r offset <&"${ports[0]}" || fail "no ports are free"
user=$(in_root id --user bodkin):$(in_root id --group bodkin)
# Where its state is says /etc/bodkin/bodkin.toml, to the service as to every command.
as_user=(chroot --userspec="$user" "$root" /usr/bin/env -i PATH=/usr/bin:/bin BODKIN_PORT_OFFSET="$offset")
# No function: what is started has to be the process that is ended.
"${as_user[@]}" bodkin up --config /etc/bodkin/bodkin.toml >"$place/up.log" 2>&1 &
cloud=$!
for ((second = 0; second < ready_seconds_max; second++)); do
    if grep --quiet ready "$place/up.log" || ! kill -0 "$cloud" 2>/dev/null; then break; fi
    sleep 1
done
grep --quiet ready "$place/up.log" || fail "as its user, with the configuration of the package, it is not ready: $(cat "$place/up.log")"
told=$("${as_user[@]}" bodkin service list 2>&1) || fail "the operator cannot ask it: $told"
grep --quiet service-register <<<"$told" || fail "its own services are not registered: $told"
told=$("${as_user[@]}" bodkin status 2>&1) || fail "it is not well: $told"

# What docs/how-to/by-hand.md says of a browser; and something to see there.
if ! { command -v node && BROWSER=$(command -v chromium || command -v chromium-browser || command -v google-chrome || command -v google-chrome-stable); } >/dev/null; then
    echo "SKIP packaging_browser: no node or no Chromium"
elif [[ ! -d web/node_modules/playwright-core ]]; then
    echo "SKIP packaging_browser: no playwright-core, which web/test fetches"
else
    told=$("${as_user[@]}" sh -c 'cd /var/lib/bodkin && (umask 077; echo "a password" > password) && bodkin cert issue --system sysop --p12 sysop.p12 --password-file password' 2>&1) ||
        fail "the operator comes to no key store: $told"
    told=$("${as_user[@]}" bodkin service add temperature --system sensor --address 127.0.0.1 --port 9000 2>&1) || fail "$told"
    told=$("${as_user[@]}" bodkin system add display --address 127.0.0.1 --port 9001 2>&1) || fail "$told"
    export BROWSER ORIGIN=https://127.0.0.1:$((8440 + offset)) KEY_STORE=$root/var/lib/bodkin/sysop.p12 PASSWORD_FILE=$root/var/lib/bodkin/password
    timeout "$browser_seconds_max" node web/test/installed.mjs || failed=1
fi

kill "$cloud"
wait "$cloud" || fail "SIGTERM is no order to end: $(cat "$place/up.log")"
cloud=

told=$(in_root dpkg --purge bodkin 2>&1) || fail "$told"
[[ ! -e $root/usr/bin/bodkin && ! -e $root/etc/bodkin/bodkin.toml ]] || fail "the package leaves files behind: $told"
[[ -e $root/var/lib/bodkin/bodkin.sqlite ]] || fail "the operator's data is gone"
echo "ok - $name"
exit "$failed"
