#!/usr/bin/env bash
# What the library takes of a Cortex-M3, in octets: that it is no more than was promised, no global, and nothing of libc but what <string.h> has.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"
cross=arm-none-eabi
core=(src/zmtp.c src/greeting.c src/handshake.c src/message.c src/metadata.c src/poll.c src/put.c src/writer.c)
all=("${core[@]}" src/link.c src/subscriptions.c)
node=(src/bodkin_node.c src/bodkin_retained.c src/bodkin_trace.c src/bodkin_wire.c)
farm=(src/taskfarm_master.c src/taskfarm_worker.c)
one=(-DZMTP_WITH_ALL_TYPES=0 -DZMTP_WITH_PLAIN=0 -DZMTP_WITH_PING=0 -DZMTP_WITH_REASONS=0 -DZMTP_WITH_WAITING=0 -DZMTP_WITH_PROPERTY=0)

text_max_one=2500
text_max_all=6000
ram_max=64

# What an object may ask of others: the library itself, <string.h>, and what the compiler calls for divisions, shifts of 64 bits and switches.
asked='^(memcpy|memset|memcmp|memmove|strlen|(zmtp|bodkin|taskfarm)_[a-z0-9_]+|__aeabi_[a-z0-9_]+|__gnu_thumb1[a-z0-9_]+)$'
included='<(stdint|stddef|string)\.h>'

if ! command -v "$cross-gcc" >/dev/null; then
    echo "SKIP zmtp_c_sizes: no $cross-gcc (Debian's gcc-arm-none-eabi and libnewlib-arm-none-eabi)"
    exit 0
fi

objects=$build/m3
build_objects() { # SOURCE... -- OPTION...: in $objects; what does not compile ends the script
    local sources=() source
    while (($#)) && [[ $1 != -- ]]; do
        sources+=("$1")
        shift
    done
    rm -rf "$objects"
    mkdir -p "$objects"
    for source in "${sources[@]}"; do
        if ! "$cross-gcc" "${warnings[@]}" -mcpu=cortex-m3 -mthumb -Os -Iinclude "${@:2}" -c "$source" -o "$objects/$(basename "$source" .c).o"; then
            printf 'not ok %s is built for Cortex-M3: %s\n' "$source" "${*:2}"
            exit 1
        fi
    done
}

declare -A measured
measure() { # NAME SOURCE... -- OPTION...: text[NAME] are octets of code and constants; globals and symbols of others are failures
    local name=$1 text data bss foreign rest
    build_objects "${@:2}"
    read -r text data bss rest < <("$cross-size" -t "$objects"/*.o | tail -1)
    foreign=$("$cross-nm" -u "$objects"/*.o | awk '$1 == "U" { print $2 }' | sort -u | grep -vE "$asked" || true)
    if ((data + bss > 0)) || "$cross-nm" "$objects"/*.o | grep -E ' [bBdDC] '; then
        printf 'not ok %s has no global: %d octets of data, %d of bss\n' "$name" "$data" "$bss"
        failed=1
    fi
    if [[ -n $foreign ]]; then
        printf 'not ok %s asks for nothing of others but <string.h>: %s\n' "$name" "${foreign//$'\n'/ }"
        failed=1
    fi
    measured[$name]=$text
    printf 'note zmtp-c on Cortex-M3, %s: %d octets\n' "$name" "$text"
}

size_of() { # TYPE HEADER: octets
    echo "char size[sizeof($1)];" |
        "$cross-gcc" -std=c99 -mcpu=cortex-m3 -mthumb -Iinclude -include "$2" -x c -c - -o "$build/ram.o" &&
        printf '%d\n' "0x$("$cross-nm" -S "$build/ram.o" | awk '/ size$/ { print $2 }')"
}

check() { # NAME OCTETS MAX
    printf 'note %s: %d octets, %d are promised\n' "$1" "$2" "$3"
    report "$1" test "$2" -le "$3"
}

measure "the reliable publisher" "${node[@]}" -- -DBODKIN_WITH_SUBSCRIBER=0 -DBODKIN_WITH_TRACES=0
measure "the publisher of events that are of traces" "${node[@]}" -- -DBODKIN_WITH_SUBSCRIBER=0
measure "the publisher that can hear" "${node[@]}" --
measure "the subscriber besides" src/bodkin_subscriber.c --
measure "CURVE of a client without its cryptography" src/curve.c -- -DZMTP_WITH_CURVE=1
measure "CURVE of a server besides" src/curve_server.c -- -DZMTP_WITH_CURVE=1 -DZMTP_WITH_CURVE_SERVER=1
measure "the task farm, master and worker" "${farm[@]}" --
measure "every source with everything" src/*.c -- -DZMTP_WITH_CURVE=1 -DZMTP_WITH_CURVE_SERVER=1
largest=0
for type in REQ REP DEALER ROUTER PUB SUB PUSH PULL PAIR; do
    measure "$type alone" "${core[@]}" -- "${one[@]}" "-DZMTP_WITH_$type=1"
    if ((measured["$type alone"] > largest)); then largest=${measured["$type alone"]}; fi
done
measure "all socket types" "${all[@]}" --
if ((!failed)); then echo "ok no source has a global, or asks for more than <string.h>"; fi

others=$(grep -HE '^ *# *include *<' src/* include/* | grep -vE "$included" || true)
report "the library includes nothing but three headers of C" test -z "$others"
others=$(grep -HE '^ *# *include *<' adapter/* | grep -vE "$included|adapter/zmtp_sodium\.h:#include <sodium\.h>" || true)
report "an adapter includes its cryptography besides" test -z "$others"

check "text of NULL and the largest one socket type" "$largest" "$text_max_one"
check "text of all socket types, PLAIN, PING, reasons, links and subscriptions" "${measured["all socket types"]}" "$text_max_all"
ram=$(size_of zmtp_t zmtp.h)
link=$(size_of zmtp_link_t zmtp_link.h)
check "RAM of a connection beside its buffer" "$ram" "$ram_max"
printf 'note RAM of a link, which is a connection with its way out and what a port knows: %d octets, of which the connection has %d\n' "$link" "$ram"
exit "$failed"
