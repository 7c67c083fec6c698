#!/usr/bin/env bash
# The image of the Debian package: built by buildah from what debootstrap has made, without a registry, and run as its user: ready, healthy, an event published and heard.
# As root. By hand, no part of ./x test --all: it took three to five minutes beside builds on two cores, and needs buildah.
# BODKIN: a binary that is built already; otherwise that of the debug build. PACKAGING_CLEAN_ROOT: such a root as a tar file, instead of debootstrap's.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")
name=packaging_container
build_seconds_max=500
ready_seconds_max=120
end_seconds_max=20
heard_seconds_max=60

skip() { echo "SKIP $name: $1"; exit 0; }
fail() { printf 'not ok - %s\n%s\n' "$name" "$1"; exit 1; }

[[ $(id -u) == 0 ]] || skip "not root, which a container needs"
for tool in buildah dpkg-deb curl; do
    command -v "$tool" >/dev/null || skip "no $tool"
done
# shellcheck disable=SC1091
codename=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
kept=${PACKAGING_CLEAN_ROOT:-$build_dir/clean-root-$codename.tar}
[[ -e $kept ]] || skip "no $kept, which all_clean_root.sh keeps"

place=$(mktemp -d)
cloud=
listener=
# Images and containers of its own, which nobody else sees; no mounts and no namespaces are needed with these.
images() { buildah --storage-driver vfs --root "$place/images" --runroot "$place/run" "$@"; }
# shellcheck disable=SC2317
end() {
    if [[ -n $listener ]]; then kill "$listener" 2>/dev/null; fi
    if [[ -n $cloud ]]; then kill -9 -- "-$cloud" 2>/dev/null && wait "$cloud" 2>/dev/null; fi
    images rm --all >/dev/null 2>&1
    rm -rf --one-file-system "$place"
}
trap end EXIT

images from --name base scratch >/dev/null 2>"$place/base.log" || skip "buildah makes no container here: $(tail -n 1 "$place/base.log")"
images add --quiet base "$kept" / >/dev/null 2>"$place/base.log" || skip "buildah makes no container here: $(tail -n 1 "$place/base.log")"
images commit --quiet base localhost/debian >/dev/null 2>"$place/base.log" || skip "buildah makes no image here: $(tail -n 1 "$place/base.log")"
images rm base >/dev/null
probe=$(images from localhost/debian 2>"$place/base.log") || skip "buildah makes no container here: $(tail -n 1 "$place/base.log")"
images run --isolation chroot "$probe" -- /bin/true >"$place/base.log" 2>&1 || skip "buildah runs nothing here: $(tail -n 1 "$place/base.log")"
images rm "$probe" >/dev/null

mkdir "$place/context"
BODKIN=${BODKIN:-$build_dir/debug/bodkin} packaging/deb/build.sh "$place/context" >"$place/build.log" 2>&1 || fail "$(cat "$place/build.log")"
timeout "$build_seconds_max" buildah --storage-driver vfs --root "$place/images" --runroot "$place/run" bud --isolation chroot --format docker \
    --build-arg BASE=localhost/debian --file packaging/container/Containerfile.deb --tag localhost/bodkin "$place/context" >"$place/build.log" 2>&1 ||
    fail "no image: $(cat "$place/build.log")"

described=$(images inspect --type image localhost/bodkin)
for said in '"bodkin"' '"/var/lib/bodkin"' '"8440/tcp"' '"up"' BODKIN_DATA=/var/lib/bodkin HEALTHCHECK; do
    grep --quiet --fixed-strings "$said" <<<"$described" || fail "the image does not say $said: $described"
done

offset=
for ((try = 0; try < 50; try++)); do
    offset=$((24000 + RANDOM % 7000))
    for port in 5570 8440 8441 8443 8445 8449 8453 8455; do
        if (exec 3<>"/dev/tcp/127.0.0.1/$((port + offset))") 2>/dev/null; then offset= && break; fi
    done
    [[ -n $offset ]] && break
done
[[ -n $offset ]] || fail "no ports are free"
container=$(images from localhost/bodkin) || fail "no container of the image"
# Isolation by chroot shares the host's network, so that the image's ports are moved away from others'.
images config --env "BODKIN_PORT_OFFSET=$offset" "$container"
inside() { images run --isolation chroot "$container" -- "$@"; }
[[ $(inside id --user --name) == bodkin ]] || fail "it runs as somebody else: $(inside id 2>&1)"
# A group of its own: buildah has Bodkin run by processes of processes of its own.
setsid buildah --storage-driver vfs --root "$place/images" --runroot "$place/run" run --isolation chroot "$container" -- \
    bodkin up --config /etc/bodkin/bodkin.toml --insecure --listen 127.0.0.1 >"$place/up.log" 2>&1 &
cloud=$!
for ((second = 0; second < ready_seconds_max; second++)); do
    if grep --quiet ready "$place/up.log" || ! kill -0 "$cloud" 2>/dev/null; then break; fi
    sleep 1
done
grep --quiet ready "$place/up.log" || fail "it is not ready: $(cat "$place/up.log")"
# What HEALTHCHECK asks.
told=$(inside bodkin status 2>&1) || fail "it is not healthy: $told"

post() { curl --silent --show-error --fail --max-time 10 --output "$place/answer" --header 'Content-Type: application/json' --data "$2" "http://127.0.0.1:$1" 2>&1; }
events=$((8455 + offset))
told=$(post $((8443 + offset))/serviceregistry/register-system '{"systemName":"sensor","address":"127.0.0.1","port":9000}') || fail "$told"
curl --silent --no-buffer --max-time 300 "http://127.0.0.1:$events/eventhandler/events?event_type=heat" >"$place/heard" &
listener=$!
heard() { # TEXT
    for ((second = 0; second < heard_seconds_max; second++)); do
        grep --quiet --fixed-strings "$1" "$place/heard" && return
        sleep 1
    done
    return 1
}
heard subscribed || fail "the stream does not begin: $(cat "$place/heard")"
told=$(post "$events/eventhandler/publish" '{"eventType":"heat","source":{"systemName":"sensor","address":"127.0.0.1","port":9000},"payload":"23.5"}') || fail "$told"
heard '"payload":"23.5"' || fail "the event is not heard: $(cat "$place/heard")"
kill -- "-$cloud" || fail "it is gone: $(cat "$place/up.log")"
is_there() { (exec 3<>"/dev/tcp/127.0.0.1/$((8440 + offset))") 2>/dev/null; }
for ((second = 0; second < end_seconds_max; second++)); do
    is_there || break
    sleep 1
done
! is_there || fail "SIGTERM is no order to end: $(cat "$place/up.log")"
echo "ok - $name"
