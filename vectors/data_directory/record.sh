#!/usr/bin/env bash
# Records data_directory.tar.gz again: the data directories of a secure pair. The first argument is the bodkin to record with.
set -euo pipefail

bodkin=$(realpath "${1:?usage: record.sh BODKIN}")
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
offsets=(21100 21200)            # of the Primary and of the standby
pair_port=26571
witness_port=26572
seconds_max=300
work=$(mktemp -d)
pids=()
stop() { kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; }
trap 'stop; rm -rf "$work"' EXIT
cd "$work"

cp "$here/bodkin.toml" .
"$bodkin" cert init --data primary --cloud vector --operator test >/dev/null
for system in bodkin-primary bodkin-backup bodkin-witness sensor display; do
    "$bodkin" cert issue --data primary --days 3640 --system $system >/dev/null
done
cp -a primary/trust backup-trust
rm backup-trust/root.key
mkdir -p backup witness/trust/systems
mv backup-trust backup/trust
cp primary/trust/{cloud.crt,revoked.crl} witness/trust/
cp primary/trust/systems/bodkin-witness.{crt,key} witness/trust/systems/

node() { # NAME ARGUMENT...
    local name=$1
    shift
    "$bodkin" "$@" --config bodkin.toml --data "$name" >"$name.out" 2>"$name.err" </dev/null &
    pids+=($!)
}
node witness witness --witness-listen 127.0.0.1:$witness_port
node backup backup --port-offset "${offsets[1]}" --pair-listen 127.0.0.1:$pair_port --witness 127.0.0.1:$witness_port
sleep 1
node primary up --port-offset "${offsets[0]}" --role primary --peer 127.0.0.1:$pair_port --witness 127.0.0.1:$witness_port

registry=$((8443 + offsets[0]))
monitor=$((8440 + offsets[0]))
eventhandler=$((8455 + offsets[0]))
by() { # SYSTEM CURL-ARGUMENT...
    local trust=$work/primary/trust system=$1
    shift
    curl --silent --show-error --fail-with-body --cacert "$trust/cloud.crt" --cert "$trust/systems/$system.crt" --key "$trust/systems/$system.key" "$@"
}
until by sysop "https://127.0.0.1:$monitor/metrics" 2>/dev/null | grep -qx 'bodkin_pair_protected 1'; do
    if ((SECONDS > seconds_max)); then cat ./*.err >&2; exit 1; fi
    sleep 0.2
done

public_key() { openssl pkey -in "primary/trust/systems/$1.key" -pubout -outform DER | base64 -w 0; }
system() { printf '{"systemName": "%s", "address": "127.0.0.1", "port": %d, "authenticationInfo": "%s"}' "$1" "$2" "$(public_key "$1")"; }
post() { # SYSTEM PORT PATH BODY
    by "$1" --json "$4" "https://127.0.0.1:$2$3"
}
number() { sed "s/.*\"$1\":{\"id\":\([0-9]*\).*/\1/"; }
form=$(printf '{"serviceDefinition": "temperature", "providerSystem": %s, "serviceUri": "/t", "secure": "CERTIFICATE", "version": 3, "metadata": {"unit": "celsius"}, "interfaces": ["HTTP-SECURE-JSON"]}' "$(system sensor 9001)")
entry=$(post sensor "$registry" /serviceregistry/register "$form")
display=$(post display "$registry" /serviceregistry/register-system "$(system display 9002)" | sed 's/^{"id":\([0-9]*\).*/\1/')
post sysop $((8445 + offsets[0])) /authorization/mgmt/intracloud "$(printf \
    '{"consumerId": %d, "providerIds": [%d], "serviceDefinitionIds": [%d], "interfaceIds": [%d]}' "$display" \
    "$(number provider <<<"$entry")" "$(number serviceDefinition <<<"$entry")" "$(sed 's/.*"interfaces":\[{"id":\([0-9]*\).*/\1/' <<<"$entry")")" >/dev/null

operator() { "$bodkin" "$@" --data primary --service-registry 127.0.0.1:$registry >/dev/null; }
operator topic add PRESSURE period_ms=100 deadline_ms=1000
operator graph deploy "$here/means.toml"

publish() { # TYPE PAYLOAD, without quotation marks
    post sensor "$eventhandler" /eventhandler/publish "$(printf \
        '{"eventType": "%s", "payload": "%s", "source": %s, "timeStamp": "'"$(date -u +%FT%TZ)"'"}' "$1" "$2" "$(system sensor 9001)")" >/dev/null
}
subscription() { printf '{"eventType": "%s", "subscriberSystem": %s, "notifyUri": "/notify", "matchMetaData": false}' "$1" "$(system display 9002)"; }
post display "$eventhandler" /eventhandler/subscribe "$(subscription ALARM)" >/dev/null
for level in 1 3 8; do publish LEVEL "$level"; sleep 0.05; done
publish ALARM 'pressure high'
publish OTHER 'plain text'
sleep 2   # A checkpoint of the graph follows its last event.

stop
pids=()
rm -f ./*/{lock,zmtp.ipc}
mkdir data_directory
mv primary backup witness bodkin.toml data_directory/
tar --create --sparse --sort=name --owner=0 --group=0 --numeric-owner data_directory | gzip -9n >"$here/data_directory.tar.gz"
find data_directory -type f -printf '%9s %p\n'
ls -l "$here/data_directory.tar.gz"
