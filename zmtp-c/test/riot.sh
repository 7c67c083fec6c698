# What the scripts of the use cases on RIOT native share, behind build.sh. A script says beforehand: `name`, of the test; `medium`, in words; `run_count`; `deadline_s` of a run;
# and it has a function `station USE_CASE master|worker CALL FILE`, which starts one and adds its process to `processes`.
place=$(mktemp -d)
processes=()

skip() {
    echo "SKIP $name: $*"
    exit 0
}

need_riot() {
    [[ -n ${RIOTBASE-} ]] || skip "no RIOTBASE"
    [[ -r $RIOTBASE/Makefile.include ]] || skip "RIOTBASE is no RIOT source tree: $RIOTBASE"
}

stop() { # PROCESS...
    local process
    for process in "$@"; do kill -9 "$process" 2>/dev/null || true; done
    wait "$@" 2>/dev/null || true
}

build_use_cases() { # FOLDER: into this one, beside what else is built
    local use_case
    for use_case in prime_count word_count; do
        if ! make -s -C examples/riot_use_case BOARD=native64 USE_CASE=$use_case BINDIRBASE="$build/$1-$use_case" >"$place/make.log" 2>&1; then
            cat "$place/make.log"
            echo "not ok $use_case is built for RIOT native, $medium"
            exit 1
        fi
        echo "ok $use_case is built for RIOT native, $medium"
    done
}

count() { # USE_CASE FORM SIZE COUNTED: microseconds of the master's work, from the first task to the last result; nothing, if it does not end with this
    local left=$((deadline_s * 10))
    rm -f "$place/master" "$place/worker"
    station "$1" master "master,$2,1,$3,5555" "$place/master"
    station "$1" worker "worker,$2,$master_address,5555" "$place/worker"
    until grep -qs '"who": "master"' "$place/master" || ((left-- == 0)); do sleep 0.1; done
    stop "${processes[@]}"
    processes=()
    sed -n "s/.*\"work_us\": \([0-9]*\),.*$4.*/\1/p" "$place/master"
}

measure() { # USE_CASE FORM SIZE COUNTED WHAT: every run has to count all
    local times=() run
    for ((run = 0; run < run_count; run++)); do
        times+=("$(count "$1" "$2" "$3" "$4")")
        if [[ -z ${times[-1]} ]]; then
            echo "of the master:"
            cat "$place/master"
            echo "of the worker:"
            cat "$place/worker"
            echo "not ok $1 on RIOT, $medium, $2: run $((run + 1)) has not counted all within $deadline_s s"
            failed=1
            return
        fi
    done
    mapfile -t times < <(printf '%s\n' "${times[@]}" | sort -n)
    printf 'note zmtp-c on RIOT native, %s, %s, 1 worker, %s: %d us (%d to %d, %d runs)\n' "$medium" "$5" "$2" "${times[run_count / 2]}" "${times[0]}" "${times[-1]}" \
        "$run_count"
    echo "ok $1 on RIOT, $medium, $2"
}

measure_all() {
    local form
    for form in original joined farm; do measure prime_count "$form" 1000 '"primes": 135,' "135 primes"; done
    for form in original farm; do measure word_count "$form" 1 '"words": 1345, "lines": 117,' "1,345 words"; done
}
