#!/usr/bin/env bash
# Bodkin for another processor: builds it for TARGET (a debug build, or what CARGO_PROFILE names), starts it under qemu's user emulation, publishes an event and hears it.
# usage: packaging/test/cross.sh aarch64-unknown-linux-gnu|armv7-unknown-linux-gnueabihf
# Debian: gcc-aarch64-linux-gnu libc6-dev-arm64-cross, gcc-arm-linux-gnueabihf libc6-dev-armhf-cross, cmake, qemu-user-static; `rustup target add TARGET`.
# No part of ./x test: the build takes as long as all others together.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
target=${1:?"usage: $0 aarch64-unknown-linux-gnu|armv7-unknown-linux-gnueabihf"}
profile=${CARGO_PROFILE:-dev}
ready_seconds_max=120
case $target in
    aarch64-unknown-linux-gnu) tools=aarch64-linux-gnu emulator=qemu-aarch64-static ;;
    armv7-unknown-linux-gnueabihf) tools=arm-linux-gnueabihf emulator=qemu-arm-static ;;
    *) echo "$0: no emulation of $target is known here" >&2; exit 2 ;;
esac
for tool in "$tools-gcc" "$emulator" curl; do
    command -v "$tool" >/dev/null || { echo "$0: $tool is missing" >&2; exit 2; }
done

linker=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")_LINKER
env "$linker=$tools-gcc" cargo build --locked --package bodkin --target "$target" --profile "$profile"
folder=${profile/#dev/debug}
binary=${CARGO_TARGET_DIR:-target}/$target/$folder/bodkin
emulated=("$emulator" -L "/usr/$tools" "$binary")
"${emulated[@]}" --version

place=$(mktemp -d)
cloud=
# shellcheck disable=SC2317
end() {
    if [[ -n $cloud ]]; then kill -9 "$cloud" 2>/dev/null || true; fi
    rm -rf "$place"
}
trap end EXIT
# Held until this ends.
coproc ports { perl packaging/test/held_offset.pl; }
read -r port_offset <&"${ports[0]}" || { echo "$0: no ports are free" >&2; exit 1; }
"${emulated[@]}" up --insecure --port-offset "$port_offset" --data "$place/data" >"$place/up.log" 2>&1 &
cloud=$!
for ((second = 0; second < ready_seconds_max; second++)); do
    if grep --quiet 'ready in' "$place/up.log" || ! kill -0 "$cloud" 2>/dev/null; then break; fi
    sleep 1
done
grep 'ready in' "$place/up.log" || { cat "$place/up.log"; exit 1; }

post() { curl --silent --show-error --fail --output "$place/answer" --header 'Content-Type: application/json' --data "$2" "http://127.0.0.1:$1"; }
events=$((8455 + port_offset))
post "$((8443 + port_offset))/serviceregistry/register-system" '{"systemName":"sensor","address":"127.0.0.1","port":9000}'
curl --silent --no-buffer --max-time 30 "http://127.0.0.1:$events/eventhandler/events?event_type=heat" >"$place/heard" &
for ((second = 0; second < 10; second++)); do
    if grep --quiet subscribed "$place/heard"; then break; fi
    sleep 1
done
post "$events/eventhandler/publish" '{"eventType":"heat","source":{"systemName":"sensor","address":"127.0.0.1","port":9000},"payload":"23.5"}'
for ((second = 0; second < 10; second++)); do
    if grep --quiet '"payload":"23.5"' "$place/heard"; then break; fi
    sleep 1
done
grep --quiet '"payload":"23.5"' "$place/heard" || { echo "the event was not heard:"; cat "$place/heard"; exit 1; }
kill "$cloud"
wait "$cloud" && cloud= || { echo "it ended with $?"; exit 1; }
echo "ok $target"
