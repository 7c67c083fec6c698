#!/usr/bin/env bash
# The use cases of the thesis over loopback: each form counts what there is to count, with one worker and with four.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"
deadline_s=60

for example in prime_count word_count; do
    "$compiler" "${warnings[@]}" "${sanitizers[@]}" "${posix[@]}" -Iinclude src/*.c port/*.c port/posix/*.c examples/station.c examples/station_posix.c "examples/$example.c" -o "$build/$example"
done

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

for workers in 1 4; do
    for form in original joined farm; do
        report "prime count, $form, $workers workers" counts prime_count "$form" "$workers" 2000 '"primes": 262,'
    done
    for form in original farm; do
        report "word count, $form, $workers workers" counts word_count "$form" "$workers" 3 '"words": 1345, "lines": 117,'
    done
done
exit "$failed"
