#!/usr/bin/env bash
# The use cases of the thesis over loopback: each form counts what there is to count, with one worker and with four, and the farm does so although one falls silent.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"
deadline_s=60

built() { # EXAMPLE PROGRAM OPTION...
    "$compiler" "${warnings[@]}" "${sanitizers[@]}" "${posix[@]}" -Iinclude src/*.c port/*.c port/posix/*.c examples/station.c examples/station_posix.c "examples/$1.c" \
        -o "$build/$2" "${@:3}"
}
built prime_count prime_count
built word_count word_count
built prime_count prime_count_impatient -DSTATION_SILENCE_MS=300u

free_port() { # one that nobody listens on now
    local port
    while :; do
        port=$((20000 + RANDOM % 10000))
        (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}

counts() { # EXAMPLE FORM WORKERS SIZE EXPECTED: what the master says has this in it
    local port master worker said status=0 workers=()
    port=$(free_port)
    timeout "$deadline_s" "$build/$1" master "$2" "$3" "$4" "$port" >"$build/$1.said" &
    master=$!
    for ((worker = 0; worker < $3; worker++)); do
        # The master may not listen yet, and then a worker tries again.
        (until timeout "$deadline_s" "$build/$1" worker "$2" 127.0.0.1 "$port" || ! kill -0 "$master"; do sleep 0.05; done) >/dev/null 2>&1 &
        workers+=($!)
    done
    wait "$master" || status=1
    wait "${workers[@]}" || true
    said=$(cat "$build/$1.said")
    echo "$said"
    ((status == 0)) && [[ $said == *"$5"* ]]
}

# A worker that grants two tasks and says nothing more, without an end of its connection: as one whose battery is empty.
a_silent_worker_is_replaced() {
    local port master silent status=0
    port=$(free_port)
    timeout "$deadline_s" "$build/prime_count_impatient" master farm 2 2000 "$port" >"$build/prime_count_impatient.said" &
    master=$!
    until { exec {silent}<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null || ! kill -0 "$master"; do sleep 0.05; done
    {
        printf '\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL'
        printf '\0%.0s' {1..48}
        printf '\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06DEALER\0\x03\x01\0\x02'
    } >&"$silent"
    timeout "$deadline_s" "$build/prime_count_impatient" worker farm 127.0.0.1 "$port" >/dev/null &
    wait "$master" || status=1
    exec {silent}>&-
    wait
    cat "$build/prime_count_impatient.said"
    ((status == 0)) && grep -q '"primes": 262,' "$build/prime_count_impatient.said"
}

report "prime count, farm, a worker falls silent" a_silent_worker_is_replaced
for workers in 1 4; do
    for form in original joined farm; do
        report "prime count, $form, $workers workers" counts prime_count "$form" "$workers" 2000 '"primes": 262,'
    done
    for form in original farm; do
        report "word count, $form, $workers workers" counts word_count "$form" "$workers" 3 '"words": 1345, "lines": 117,'
    done
done
exit "$failed"
