#!/usr/bin/env bash
# The use cases on RIOT native (RIOTBASE: a RIOT source tree) over 6LoWPAN on IEEE 802.15.4, which its module `socket_zep` and its ZEP dispatcher emulate: as all_riot_use_cases.sh.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"
name=zmtp_c_riot_radio
medium="802.15.4"
run_count=${RIOT_RUNS:-5}
deadline_s=60
master_address=fe80::1
source test/riot.sh
need_riot

cleanup() {
    stop "${processes[@]}" "${dispatcher[@]}"
    rm -rf "$place"
}
dispatcher=()
trap cleanup EXIT
USEMODULE="socket_zep eui_provider" build_use_cases riot-radio

# RIOT's own, built beside what else is built.
tool=$RIOTBASE/dist/tools/zep_dispatch
"${CC:-cc}" -O2 -w -DNDEBUG -I"$tool" -I"$RIOTBASE/core/lib/include" -I"$RIOTBASE/cpu/native/include" -I"$RIOTBASE/drivers/include" -I"$RIOTBASE/sys/include" \
    "$tool"/{main,topology,zep_parser}.c "$RIOTBASE"/sys/net/link_layer/{ieee802154/ieee802154,l2util/l2util}.c "$RIOTBASE"/sys/{fmt/fmt,libc/string}.c -o "$build/zep_dispatch"

port=$((20000 + RANDOM % 10000))
"$build/zep_dispatch" ::1 $port >"$place/dispatcher" 2>&1 &
dispatcher=($!)
until grep -qi ":$(printf '%04x' $port) " /proc/net/udp6 || ! kill -0 "${dispatcher[0]}"; do sleep 0.1; done # who speaks before is not known to it for seconds

declare -A number=([master]=01 [worker]=02)
station() { # USE_CASE master|worker CALL FILE
    ADDRESS=fe80::${number[$2]#0} CALL=$3 ${RIOT_PREFIX-} "$build/riot-radio-$1/native64/$1.elf" -z "[::1]:$port" "--eui64=02:00:00:00:00:00:00:${number[$2]}" >"$4" 2>&1 &
    processes+=($!)
}

measure_all
exit "$failed"
