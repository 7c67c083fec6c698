#!/usr/bin/env bash
# What the library takes of a Cortex-M3, in octets, and that it is no more than was promised.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"
cross=arm-none-eabi
core=(src/zmtp.c src/greeting.c src/handshake.c src/message.c src/metadata.c src/poll.c src/put.c src/writer.c)
all=("${core[@]}" src/link.c src/subscriptions.c)
node=(src/bodkin_node.c src/bodkin_retained.c src/bodkin_wire.c)
one=(-DZMTP_WITH_ALL_TYPES=0 -DZMTP_WITH_PLAIN=0 -DZMTP_WITH_PING=0 -DZMTP_WITH_REASONS=0 -DZMTP_WITH_WAITING=0)

text_max_one=2500
text_max_all=6000
ram_max=64

if ! command -v "$cross-gcc" >/dev/null; then
    echo "SKIP zmtp_c_sizes: no $cross-gcc (Debian's gcc-arm-none-eabi and libnewlib-arm-none-eabi)"
    exit 0
fi

text_of() { # SOURCE... -- OPTION...: octets of code and constants
    local sources=() source
    while (($#)) && [[ $1 != -- ]]; do
        sources+=("$1")
        shift
    done
    rm -f "$build"/m3-*.o
    for source in "${sources[@]}"; do
        "$cross-gcc" "${warnings[@]}" -mcpu=cortex-m3 -mthumb -Os -Iinclude "${@:2}" -c "$source" -o "$build/m3-$(basename "$source" .c).o" || return 1
    done
    "$cross-size" -t "$build"/m3-*.o | awk '/TOTALS/ { if ($2 + $3 > 0) exit 1; print $1 }'
}

ram_of_a_connection() {
    echo 'char size[sizeof(zmtp_t)];' |
        "$cross-gcc" -std=c99 -mcpu=cortex-m3 -mthumb -Iinclude "$@" -include zmtp.h -x c -c - -o "$build/ram.o" &&
        printf '%d\n' "0x$("$cross-nm" -S "$build/ram.o" | awk '/ size$/ { print $2 }')"
}

check() { # NAME OCTETS MAX
    printf 'note %s: %d octets, %d are promised\n' "$1" "$2" "$3"
    report "$1" test "$2" -le "$3"
}

printf 'note zmtp-c on Cortex-M3, the reliable publisher: %d octets\n' "$(text_of "${node[@]}" -- -DBODKIN_WITH_SUBSCRIBER=0)"
printf 'note zmtp-c on Cortex-M3, the subscriber besides: %d octets\n' "$(text_of src/bodkin_subscriber.c --)"
printf 'note zmtp-c on Cortex-M3, CURVE of a client without its cryptography: %d octets\n' "$(text_of src/curve.c -- -DZMTP_WITH_CURVE=1)"
printf 'note zmtp-c on Cortex-M3, CURVE of a server besides: %d octets\n' "$(text_of src/curve_server.c -- -DZMTP_WITH_CURVE=1 -DZMTP_WITH_CURVE_SERVER=1)"
largest=0
for type in REQ REP DEALER ROUTER PUB SUB PUSH PULL PAIR; do
    text=$(text_of "${core[@]}" -- "${one[@]}" "-DZMTP_WITH_$type=1")
    printf 'note zmtp-c on Cortex-M3, %s alone: %d octets\n' "$type" "$text"
    if ((text > largest)); then largest=$text; fi
done
check "text of NULL and the largest one socket type" "$largest" "$text_max_one"
check "text of all socket types, PLAIN, PING, reasons, links and subscriptions" "$(text_of "${all[@]}" --)" "$text_max_all"
check "RAM of a connection beside its buffer" "$(ram_of_a_connection)" "$ram_max"
exit "$failed"
