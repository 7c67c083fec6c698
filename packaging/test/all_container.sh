#!/usr/bin/env bash
# Images of Bodkin, built by buildah from what debootstrap has made, without a registry; that of the Debian package is run as its user: ready, healthy, an event published and heard.
# As root, with buildah. The compiler's stage of the other image, which takes as long as a release build and Rust's own image, is not built: its second stage is, around this binary.
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
kept=${PACKAGING_CLEAN_ROOT:-$build_dir/clean-root-$codename-curl.tar}
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

# Both files describe the same container: what is behind the user's line is theirs together, but for the configuration that a package brings; and Rust is the version it has to be.
behind() { sed -n '/^USER/,/^ENTRYPOINT/p' "packaging/container/$1" | grep --invert-match '^#'; }
[[ $(behind Containerfile) == "$(behind Containerfile.deb)" ]] || fail "the two images are no more alike: $(diff <(behind Containerfile) <(behind Containerfile.deb))"
rust=$(sed -n 's/^rust-version *= *"\([0-9.]*\)".*/\1/p' Cargo.toml)
grep --quiet "^FROM docker.io/library/rust:$rust-" packaging/container/Containerfile || fail "Containerfile does not build with Rust $rust, which Cargo.toml asks for"

# The root as an image. What nothing reads is left out: each image and container of this kind of storage is a copy of its own.
ready=no
images from --name base scratch >/dev/null 2>"$place/base.log" && folder=$(images mount base 2>>"$place/base.log") && tar --extract --file "$kept" --directory "$folder" \
    --exclude=./usr/share/{doc,info,locale,man,zoneinfo} --exclude=./var/lib/apt/lists --exclude=./var/cache/apt --exclude=./usr/lib/x86_64-linux-gnu/gconv 2>>"$place/base.log" &&
    mkdir -p "$folder/var/lib/apt/lists/partial" "$folder/var/cache/apt/archives/partial" && images run --isolation chroot base -- /bin/true >>"$place/base.log" 2>&1 &&
    images commit --quiet base localhost/debian >/dev/null 2>>"$place/base.log" && ready=yes
[[ $ready == yes ]] || skip "buildah makes and runs no container here: $(tail -n 1 "$place/base.log")"
images rm base >/dev/null

mkdir "$place/context"
COMPRESSION=none BODKIN=${BODKIN:-$build_dir/debug/bodkin} packaging/deb/build.sh "$place/context" >"$place/build.log" 2>&1 || fail "$(cat "$place/build.log")"
timeout "$build_seconds_max" buildah --storage-driver vfs --root "$place/images" --runroot "$place/run" bud --isolation chroot --format docker \
    --build-arg BASE=localhost/debian --file packaging/container/Containerfile.deb --tag localhost/bodkin "$place/context" >"$place/build.log" 2>&1 ||
    fail "no image: $(cat "$place/build.log")"

# The second stage of the image from source, with the package's binary where the first one would have left it.
mkdir -p "$place/built/source/target/release"
dpkg-deb --fsys-tarfile "$place"/context/bodkin_*.deb | tar --extract --to-stdout ./usr/bin/bodkin >"$place/built/source/target/release/bodkin" || fail "the package has no binary"
chmod 0755 "$place/built/source/target/release/bodkin"
timeout "$build_seconds_max" buildah --storage-driver vfs --root "$place/images" --runroot "$place/run" bud --isolation chroot --format docker \
    --build-context build="$place/built" --build-context docker.io/library/debian:bookworm-slim=container-image://localhost/debian \
    --file packaging/container/Containerfile --tag localhost/of-source "$place/context" >"$place/build.log" 2>&1 || fail "no image around a binary of the source: $(cat "$place/build.log")"

for image in bodkin of-source; do
    described=$(images inspect --type image "localhost/$image")
    for said in '"bodkin"' '"/var/lib/bodkin"' '"8440/tcp"' '"up"' BODKIN_DATA=/var/lib/bodkin HEALTHCHECK; do
        grep --quiet --fixed-strings "$said" <<<"$described" || fail "the image $image does not say $said: $described"
    done
done
of_source=$(images from localhost/of-source) || fail "no container of the image from source"
told=$(images run --isolation chroot "$of_source" -- sh -c 'bodkin --version && id --user --name && pwd && touch kept && stat --format=%a .' 2>&1) || fail "the image from source does not start: $told"
[[ $(tail -n +2 <<<"$told" | tr '\n' ' ') == "bodkin /var/lib/bodkin 700 " ]] || fail "the image from source is run otherwise: $told"
images rm "$of_source" >/dev/null

# Held until this ends.
coproc ports { perl packaging/test/held_offset.pl; }
read -r offset <&"${ports[0]}" || fail "no ports are free"
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
