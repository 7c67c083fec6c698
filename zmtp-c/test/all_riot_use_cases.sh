#!/usr/bin/env bash
# The use cases on RIOT native (RIOTBASE: a RIOT source tree), master and worker on taps of one bridge: 135 primes and 1,345 words, and how long that takes in each form.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"
runs=5
deadline_s=10
tries=3 # RIOT native may miss a signal that comes just in front of its pause(), and then sleeps for ever (cpu/native/periph/pm.c): one run in thirty on a busy machine

skip() {
    echo "SKIP zmtp_c_riot_use_cases: $*"
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

for use_case in prime_count word_count; do
    if ! make -s -C examples/riot_use_case BOARD=native64 USE_CASE=$use_case BINDIRBASE="$build/riot-$use_case" >"$place/make.log" 2>&1; then
        cat "$place/make.log"
        echo "not ok $use_case is built for RIOT native"
        exit 1
    fi
    echo "ok $use_case is built for RIOT native"
done

ip link add "$bridge" type bridge
ip link set "$bridge" up
for tap in "${taps[@]}"; do
    ip tuntap add "$tap" mode tap
    ip link set "$tap" master "$bridge" up
done

station() { # USE_CASE TAP ADDRESS CALL FILE
    ADDRESS=$3 CALL=$4 "$build/riot-$1/native64/$1.elf" "$2" >"$5" 2>&1 &
    processes+=($!)
}

attempt() { # USE_CASE FORM SIZE: runs master and worker to the master's end; fails if there is none
    local left=$((deadline_s * 10))
    station "$1" "${taps[0]}" fd00:a::1 "master,$2,1,$3,5555" "$place/master"
    station "$1" "${taps[1]}" fd00:a::2 "worker,$2,fd00:a::1,5555" "$place/worker"
    until grep -q '"who": "master"' "$place/master" || ((left-- == 0)); do sleep 0.1; done
    stop
    ((left >= 0))
}

count() { # USE_CASE FORM SIZE COUNTED: microseconds of the master's work, from the first task to the last result; nothing, if it does not end with this
    local try
    for ((try = 1; try <= tries; try++)); do
        if attempt "$1" "$2" "$3"; then break; fi
        echo "note $1 on RIOT, $2: a run did not end within $deadline_s s" >&2
    done
    sed -n "s/.*\"work_us\": \([0-9]*\),.*$4.*/\1/p" "$place/master"
}

measure() { # USE_CASE FORM SIZE COUNTED WHAT
    local times=() run
    for ((run = 0; run < runs; run++)); do times+=("$(count "$1" "$2" "$3" "$4")"); done
    if printf '%s\n' "${times[@]}" | grep -qx ''; then
        cat "$place/master" "$place/worker"
        echo "not ok $1 on RIOT, $2"
        failed=1
        return
    fi
    mapfile -t times < <(printf '%s\n' "${times[@]}" | sort -n)
    printf 'note zmtp-c on RIOT native, %s, 1 worker, %s: %d us (%d to %d, %d runs)\n' "$5" "$2" "${times[runs / 2]}" "${times[0]}" "${times[-1]}" "$runs"
    echo "ok $1 on RIOT, $2"
}

for form in original joined farm; do measure prime_count "$form" 1000 '"primes": 135,' "135 primes"; done
for form in original farm; do measure word_count "$form" 1 '"words": 1345, "lines": 117,' "1,345 words"; done
exit "$failed"
