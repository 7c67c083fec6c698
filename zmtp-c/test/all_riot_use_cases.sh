#!/usr/bin/env bash
# The use cases on RIOT native (RIOTBASE: a RIOT source tree), master and worker on taps of one bridge: 135 primes and 1,345 words, and how long that takes in each form.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"
name=zmtp_c_riot_use_cases
medium="tap"
run_count=${RIOT_RUNS:-5}
deadline_s=10
master_address=fd00:a::1
source test/riot.sh
need_riot
[[ $(id -u) == 0 && -c /dev/net/tun ]] || skip "a tap needs root and /dev/net/tun"

bridge=zb$$
declare -A tap=([master]=zm$$ [worker]=zw$$) address=([master]=$master_address [worker]=fd00:a::2)
cleanup() {
    local device
    stop "${processes[@]}"
    for device in "$bridge" "${tap[@]}"; do ip link delete "$device" 2>/dev/null || true; done
    rm -rf "$place"
}
trap cleanup EXIT
build_use_cases riot

ip link add "$bridge" type bridge
ip link set "$bridge" up
for device in "${tap[@]}"; do
    ip tuntap add "$device" mode tap
    ip link set "$device" master "$bridge" up
done

station() { # USE_CASE master|worker CALL FILE
    ADDRESS=${address[$2]} CALL=$3 ${RIOT_PREFIX-} "$build/riot-$1/native64/$1.elf" "${tap[$2]}" >"$4" 2>&1 &
    processes+=($!)
}

measure_all
exit "$failed"
