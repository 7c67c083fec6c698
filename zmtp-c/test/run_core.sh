#!/usr/bin/env bash
# The library without peers: golden bytes, faults, types, fuzz seeds, and every feature compiled out.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"
rounds=${BODKIN_FUZZ_ROUNDS:-20000}

run() { # NAME SOURCE|OPTION... -- ARGUMENT...: builds a program that prints a line for each of its tests, and runs it
    local name=$1 sources=()
    shift
    while (($#)) && [[ $1 != -- ]]; do
        sources+=("$1")
        shift
    done
    "$compiler" "${warnings[@]}" "${sanitizers[@]}" "${posix[@]}" -Iinclude src/*.c test/json.c test/party.c "${sources[@]}" -o "$build/$name" &&
        timeout 120 "$build/$name" "${@:2}" || failed=1
}

run test_vectors test/test_vectors.c -- ../vectors/zmtp
run test_hostile test/test_hostile.c
run test_types test/test_types.c
run test_net port/net.c test/test_net.c
run test_net_in_frames port/net.c test/test_net.c -DZMTP_NET_WRITE_MAX=48u
run test_node test/test_node.c -- ../vectors/wire
run test_subscriber test/test_subscriber.c -- ../vectors/wire
run test_taskfarm test/test_taskfarm.c
for target in zmtp node taskfarm curve; do
    options=()
    if [[ $target == curve ]]; then options=(-DZMTP_WITH_CURVE=1 -DZMTP_WITH_CURVE_SERVER=1); fi
    run "fuzz_$target" "fuzz/fuzz_$target.c" fuzz/replay.c "${options[@]}" -- "fuzz/seeds/$target" "$rounds" "$RANDOM$RANDOM"
done

compiles() { # OPTION...
    local source
    for source in src/*.c port/*.c port/posix/*.c; do
        "$compiler" "${warnings[@]}" "${posix[@]}" -O1 -Iinclude "$@" -S -o /dev/null "$source" || return 1
    done
}

report "the POSIX port is built without a warning" "$compiler" "${warnings[@]}" "${posix[@]}" -O1 -Iinclude -fsyntax-only port/*.c port/posix/*.c
for example in examples/*.c test/broker.c; do
    report "$example is built" "$compiler" "${warnings[@]}" "${posix[@]}" -O1 -Iinclude -fsyntax-only "$example"
done

if "$compiler" -x c -E - <<<'#include <sodium.h>' >/dev/null 2>&1; then
    report "examples/bodkin_publisher.c is built with CURVE" "$compiler" "${warnings[@]}" "${posix[@]}" -O1 -Iinclude -Iadapter -DZMTP_WITH_CURVE=1 -fsyntax-only \
        examples/bodkin_publisher.c port/bodkin_sessions.c
fi

# Every feature alone off, every socket type alone on, and nothing at all but one.
for feature in REQ REP DEALER ROUTER PUB SUB PUSH PULL PAIR PLAIN PING REASONS WAITING PROPERTY; do
    report "it is built without $feature" compiles "-DZMTP_WITH_$feature=0"
done
report "it is built without SUBSCRIBER" compiles -DBODKIN_WITH_SUBSCRIBER=0
report "it is built without TRACES" compiles -DBODKIN_WITH_TRACES=0
report "it is built without either" compiles -DBODKIN_WITH_SUBSCRIBER=0 -DBODKIN_WITH_TRACES=0
report "it is built with CURVE" compiles -DZMTP_WITH_CURVE=1
report "it is built with CURVE and without PLAIN" compiles -DZMTP_WITH_CURVE=1 -DZMTP_WITH_PLAIN=0
report "it is built with both ends of CURVE" compiles -DZMTP_WITH_CURVE=1 -DZMTP_WITH_CURVE_SERVER=1
report "it is built with both ends of CURVE and without PLAIN" compiles -DZMTP_WITH_CURVE=1 -DZMTP_WITH_CURVE_SERVER=1 -DZMTP_WITH_PLAIN=0
for type in REQ REP DEALER ROUTER PUB SUB PUSH PULL PAIR; do
    report "it is built with $type alone" compiles -DZMTP_WITH_ALL_TYPES=0 "-DZMTP_WITH_$type=1" -DZMTP_WITH_PLAIN=0 -DZMTP_WITH_PING=0 \
        -DZMTP_WITH_REASONS=0 -DZMTP_WITH_WAITING=0 -DZMTP_WITH_PROPERTY=0
done
exit "$failed"
