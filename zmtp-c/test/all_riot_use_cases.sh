#!/usr/bin/env bash
# Prime count on RIOT native (RIOTBASE: a RIOT source tree), master and worker on taps of one bridge: 135 primes, and how long that takes in the thesis' form and joined.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"
runs=5
deadline_s=30

skip() {
    echo "SKIP zmtp_c_riot_prime_count: $*"
    exit 0
}
[[ -n ${RIOTBASE-} ]] || skip "no RIOTBASE"
[[ -r $RIOTBASE/Makefile.include ]] || skip "RIOTBASE is no RIOT source tree: $RIOTBASE"
[[ $(id -u) == 0 && -c /dev/net/tun ]] || skip "a tap needs root and /dev/net/tun"

bridge=zb$$
taps=("zm$$" "zw$$")
place=$(mktemp -d)
processes=()
stop() {
    local process
    for process in "${processes[@]}"; do kill -9 "$process" 2>/dev/null || true; done
    wait 2>/dev/null || true
    processes=()
}
cleanup() {
    local device
    stop
    for device in "$bridge" "${taps[@]}"; do ip link delete "$device" 2>/dev/null || true; done
    rm -rf "$place"
}
trap cleanup EXIT

if ! make -s -C examples/riot_prime_count BOARD=native64 BINDIRBASE="$build/riot-prime-count" >"$place/make.log" 2>&1; then
    cat "$place/make.log"
    echo "not ok prime count is built for RIOT native"
    exit 1
fi
echo "ok prime count is built for RIOT native"

ip link add "$bridge" type bridge
ip link set "$bridge" up
for tap in "${taps[@]}"; do
    ip tuntap add "$tap" mode tap
    ip link set "$tap" master "$bridge" up
done

station() { # TAP ADDRESS CALL FILE
    ADDRESS=$2 CALL=$3 "$build/riot-prime-count/native64/prime_count.elf" "$1" >"$4" 2>&1 &
    processes+=($!)
}

count() { # FORM: microseconds of the master's work, from the first interval to the last result; nothing, if it does not end
    local left=$((deadline_s * 10))
    station "${taps[0]}" fd00:a::1 "master,$1,1,1000,5555" "$place/master"
    station "${taps[1]}" fd00:a::2 "worker,$1,fd00:a::1,5555" "$place/worker"
    until grep -q '"who": "master"' "$place/master" || ((left-- == 0)); do sleep 0.1; done
    stop
    sed -n 's/.*"work_us": \([0-9]*\),.*"primes": 135,.*/\1/p' "$place/master"
}

for form in original joined; do
    times=()
    for ((run = 0; run < runs; run++)); do times+=("$(count "$form")"); done
    if printf '%s\n' "${times[@]}" | grep -qx ''; then
        cat "$place/master" "$place/worker"
        echo "not ok prime count on RIOT, $form"
        failed=1
        continue
    fi
    mapfile -t times < <(printf '%s\n' "${times[@]}" | sort -n)
    printf 'note zmtp-c on RIOT native, 135 primes, 1 worker, %s: %d us (%d to %d, %d runs)\n' "$form" "${times[runs / 2]}" "${times[0]}" "${times[-1]}" "$runs"
    echo "ok prime count on RIOT, $form"
done
exit "$failed"
