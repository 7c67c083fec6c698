#!/usr/bin/env bash
# On RIOT native (RIOTBASE: a RIOT source tree): a node publishes to a reliable pair of Bodkin over a tap, with deadlines and bounds on losses guaranteed. The Primary is killed, everything is
# covered all the same, and a required subscriber in C hears each event once.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"

skip() {
    echo "SKIP zmtp_c_riot: $*"
    exit 0
}
[[ -n ${RIOTBASE-} ]] || skip "no RIOTBASE"
[[ -r $RIOTBASE/Makefile.include ]] || skip "RIOTBASE is no RIOT source tree: $RIOTBASE"
[[ $(id -u) == 0 && -c /dev/net/tun ]] || skip "a tap needs root and /dev/net/tun"
bodkin=${BODKIN:-$build/../debug/bodkin}
[[ -x $bodkin ]] || skip "no bodkin at $bodkin: cargo build --package bodkin"

tap=zc$$
broker=fd00:9::1
offset=$((20000 + RANDOM % 5000))
events=800
deadline_s=60
place=$(mktemp -d)
processes=()
cleanup() {
    local process
    for process in "${processes[@]}"; do kill -9 "$process" 2>/dev/null || true; done
    wait 2>/dev/null || true
    ip link delete "$tap" 2>/dev/null || true
    rm -rf "$place"
}
trap cleanup EXIT

make -s -C examples/riot_publisher BOARD=native64 BINDIRBASE="$build/riot" EVENTS=$events BROKER_1=$broker BROKER_2=$broker \
    PORT_1=$((5570 + offset)) PORT_2=$((5570 + offset + 100)) >"$place/make.log" 2>&1 ||
    {
        cat "$place/make.log"
        echo "not ok the node is built for RIOT native"
        exit 1
    }
echo "ok the node is built for RIOT native"

ip tuntap add "$tap" mode tap
ip link set "$tap" up
ip -6 address add "$broker/64" dev "$tap" nodad

cat >"$place/bodkin.toml" <<'TOML'
[platform]
clock_error_ms = 100
blocking_ms = 100
lease_ms = 400
heartbeat_ms = 50
drift_ppm = 200
detect_jitter_ms = 100
redirect_ms = 50
[[topic]]
event_type = "hot"
period_ms = 10
jitter_ms = 50
deadline_ms = 1000
loss_tolerance = 0
retention = 200
TOML

start() { # NAME ARGUMENT...
    local name=$1
    shift
    "$bodkin" "$@" --insecure --output json --log info --config "$place/bodkin.toml" --data "$place/$name" >"$place/$name.out" 2>"$place/$name.err" &
    processes+=($!)
}
until_says() { # FILE TEXT
    local left=$((deadline_s * 10))
    until grep -q "$2" "$1" || ((left-- == 0)); do sleep 0.1; done
    ((left > 0))
}

witness=127.0.0.1:$((offset + 3))
start witness witness --witness-listen "$witness"
start backup backup --listen $broker --port-offset $((offset + 100)) --pair-listen "127.0.0.1:$((offset + 4))" --witness "$witness"
start primary up --role primary --listen $broker --port-offset $offset --peer "127.0.0.1:$((offset + 4))" --witness "$witness"
primary=${processes[-1]}
until_says "$place/primary.err" 'protection=Protected' || { cat "$place"/*.err; echo "not ok the pair is there"; exit 1; }
add_system() { # NAME PORT
    curl --globoff --silent --fail --output /dev/null --header 'Content-Type: application/json' \
        --data "{\"systemName\": \"$1\", \"address\": \"localhost\", \"port\": $2}" "http://[$broker]:$((8443 + offset))/serviceregistry/mgmt/systems"
}
add_system sensor 1
add_system display 2

"$compiler" "${warnings[@]}" "${posix[@]}" -O1 -Iinclude src/*.c port/*.c port/posix/*.c examples/bodkin_subscriber.c -o "$build/bodkin_subscriber"
"$build/bodkin_subscriber" display HOT "$events" $broker $((5570 + offset)) $broker $((5570 + offset + 100)) >"$place/display.out" 2>&1 &
display=$!
processes+=("$display")
until_says "$place/display.out" '^subscribed' || { cat "$place/display.out"; echo "not ok the display has subscribed"; exit 1; }

"$build/riot/native64/bodkin_publisher.elf" "$tap" >"$place/node.out" 2>&1 &
processes+=($!)
until_says "$place/node.out" '^leads 0' || { cat "$place/node.out"; echo "not ok the node has found the Primary"; exit 1; }
if until_says "$place/node.out" '^guarantee 3 3'; then
    echo "ok deadlines and bounds on losses are guaranteed to a node on RIOT"
else
    cat "$place/node.out" "$place/primary.err"
    echo "not ok deadlines and bounds on losses are guaranteed to a node on RIOT"
    failed=1
fi
sleep 2 # amid the 8 s of its events
last_guarantee=$(grep '^guarantee' "$place/node.out" | tail -1)
report "they still are when the Primary is killed: $last_guarantee" test "$last_guarantee" = "guarantee 3 3"
heard=$(grep -c '^heard' "$place/display.out" || true)
report "which is amid the events: $heard of $events were heard" test "$heard" -gt 0 -a "$heard" -lt "$events"
kill -9 "$primary"
if until_says "$place/node.out" "all $events events are covered" && grep -q '^leads 1' "$place/node.out" && ! grep -E '^(lost|dropped|not taken) ' "$place/node.out"; then
    echo "ok a node on RIOT publishes through a fail-over"
else
    cat "$place/node.out" "$place/backup.err"
    echo "not ok a node on RIOT publishes through a fail-over"
    failed=1
fi

# The display ends when it has heard so many; a message that came twice, or none, would show in its numbers.
left=$((deadline_s * 10))
while kill -0 "$display" 2>/dev/null && ((left-- > 0)); do sleep 0.1; done
if diff <(seq "$events") <(awk '$1 == "heard" { print $3 }' "$place/display.out") >"$place/difference" && ! grep -E '^(missed|not subscribed|too many streams) ' "$place/display.out"; then
    echo "ok a required subscriber in C hears each event once and in order"
else
    head -20 "$place/difference"
    grep -v '^heard' "$place/display.out" || true
    echo "not ok a required subscriber in C hears each event once and in order"
    failed=1
fi
exit "$failed"
