#!/usr/bin/env bash
# One cloud, served by three Bodkins that share a PostgreSQL database, with NATS between them: all on this machine, for trying out. Ctrl-C stops it.
#
#   packaging/try/several-nodes.sh [DIRECTORY]
#
# DIRECTORY keeps the database and the nodes' data for the next time; without it they are in a temporary one, which goes at the end. Needs
# PostgreSQL (Debian: apt install postgresql) and nats-server. BODKIN and BODKIN_NATS_SERVER name the programs, NATS_PORT and OFFSETS
# (three numbers, which are added to the ports of each node) where they listen.
set -euo pipefail

say() { printf '%s\n' "$*"; }
fail() { printf 'several-nodes: %s\n' "$*" >&2; exit 1; }

# The first of them that is a program, from the root.
program() {
    local candidate
    for candidate in "$@"; do
        if candidate=$(command -v "$candidate"); then
            realpath --no-symlinks "$candidate"
            return
        fi
    done
    return 1
}

tree=$(cd "$(dirname "$0")/../.." && pwd)
bodkin=$(program ${BODKIN:+"$BODKIN"} bodkin "$tree/target/release/bodkin") || fail "no bodkin: put it into PATH, or name it with BODKIN"
nats=$(program ${BODKIN_NATS_SERVER:+"$BODKIN_NATS_SERVER"} nats-server "$tree/target/nats/nats-server") ||
    fail "no nats-server: go install github.com/nats-io/nats-server/v2@latest, or name it with BODKIN_NATS_SERVER"
postgres=$(compgen -G '/usr/lib/postgresql/*/bin/postgres' | sort -V | tail -n 1) || true
[[ -n $postgres ]] || postgres=$(program postgres) || fail "no PostgreSQL server: apt install postgresql"
programs=$(dirname "$(readlink -f "$postgres")")
read -ra offsets <<<"${OFFSETS:-100 200 300}"
nats_port=${NATS_PORT:-4222}
[[ ${#offsets[@]} == 3 ]] || fail "OFFSETS are three numbers, which are added to the ports of each node"

if [[ $# -gt 0 ]]; then
    mkdir -p "$1"
    place=$(cd "$1" && pwd)
    keep=yes
else
    place=$(mktemp -d /tmp/bodkin-nodes.XXXXXX)
    keep=no
fi
# The path of a socket has 107 bytes at the most, and PostgreSQL's user has to come to it.
[[ ${#place} -le 80 ]] || fail "the path $place is too long for a socket in it"
chmod 755 "$place"

# NAME COMMAND...: by this file it is started, and started again when it was killed.
mkdir -p "$place/run"
runs() {
    local name=$1
    shift
    printf '#!/usr/bin/env bash\ncd %q && exec%s\n' "$place" "$(printf ' %q' "$@")" >"$place/run/$name"
    chmod 755 "$place/run/$name"
}

pids=()
# In a session of its own, so that Ctrl-C here ends it in its turn.
start() {
    setsid "$place/run/$1" >"$place/$1.log" 2>&1 &
    pids+=($!)
}
stop() {
    trap - EXIT INT TERM
    say "stopping"
    # Nodes before what they stand on.
    local at signal
    for ((at = ${#pids[@]} - 1; at >= 0; at--)); do
        # PostgreSQL waits for nobody's connection then.
        if ((at == 0)); then signal=INT; else signal=TERM; fi
        kill "-$signal" "${pids[at]}" 2>/dev/null || true
        wait "${pids[at]}" 2>/dev/null || true
    done
    [[ $keep == yes ]] || rm -rf "$place"
}
trap 'stop; exit 0' INT TERM
trap stop EXIT

# PostgreSQL refuses to be root's.
as_owner=()
if [[ $(id -u) == 0 ]]; then
    id postgres >/dev/null 2>&1 || fail "PostgreSQL cannot run as root, and there is no user postgres"
    as_owner=(setpriv --reuid=postgres --regid=postgres --init-groups)
fi
mkdir -p "$place/postgres"
if [[ $(id -u) == 0 ]]; then chown postgres: "$place/postgres"; fi
if [[ ! -e $place/postgres/data/PG_VERSION ]]; then
    (cd "$place/postgres" && "${as_owner[@]}" "$programs/initdb" --auth=trust --username=bodkin --encoding=UTF8 -D "$place/postgres/data" >"$place/initdb.log" 2>&1) ||
        fail "initdb: see $place/initdb.log"
fi
runs postgres "${as_owner[@]}" "$programs/postgres" -D "$place/postgres/data" -k "$place/postgres" -c listen_addresses=
start postgres
sql() { "$programs/psql" -X -q -h "$place/postgres" -U bodkin -d "$1" -c "$2" >/dev/null 2>&1; }
for _ in {1..300}; do
    if sql postgres 'SELECT 1'; then break; fi
    kill -0 "${pids[0]}" 2>/dev/null || fail "PostgreSQL has ended: see $place/postgres.log"
    sleep 0.1
done
sql postgres 'SELECT 1' || fail "PostgreSQL does not answer: see $place/postgres.log"
sql cloud 'SELECT 1' || sql postgres 'CREATE DATABASE cloud'

runs nats "$nats" --addr 127.0.0.1 --port "$nats_port" --jetstream --store_dir "$place/nats"
start nats

# Events are kept between nodes, so that a node that was killed, and a listener that goes on at another one, gets what it has missed.
settings=(
    BODKIN_DATABASE="postgres://bodkin@${place//\//%2F}%2Fpostgres/cloud"
    BODKIN_NODE_EVENTS="nats://127.0.0.1:$nats_port" BODKIN_NODE_EVENTS_STREAM=NODES BODKIN_NODE_EVENTS_REPLICAS=1
)
say "PostgreSQL   process ${pids[0]}, $place/postgres.log"
say "NATS         process ${pids[1]}, $place/nats.log"
for node in 1 2 3; do
    offset=${offsets[node - 1]}
    runs "node-$node" env "${settings[@]}" "$bodkin" up --insecure --data "$place/node-$node" --port-offset "$offset"
    start "node-$node"
    for _ in {1..300}; do
        if grep -q '^ready in' "$place/node-$node.log"; then break; fi
        kill -0 "${pids[-1]}" 2>/dev/null || fail "node $node has ended: $(tail -n 3 "$place/node-$node.log")"
        sleep 0.1
    done
    say "node $node       process ${pids[-1]}, http://127.0.0.1:$((8440 + offset)), $place/node-$node.log"
done
cat <<WORDS

Look at the Overview of any of them. In another terminal:
    $bodkin status --port-offset ${offsets[0]}
    $bodkin system add --port-offset ${offsets[0]} --address 127.0.0.1 --port 9000 thermometer
    $bodkin event tail --port-offset ${offsets[1]} heat &
    $bodkin event publish --port-offset ${offsets[2]} --system thermometer heat 21.5
    kill -9 PROCESS      (of each in turn; then status again)
    $place/run/node-1      starts that node again, until Ctrl-C there; beside it are the others, postgres and nats
Ctrl-C here stops everything that was started here.
WORDS
# Whoever kills one of them wants to see how the others go on.
wait "${pids[@]}" || true
say "all of them have ended"
