#!/usr/bin/env bash
# CURVE of a client, by libsodium: the golden conversations, changed octets, and a server of libzmq.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"
curve=(-DZMTP_WITH_CURVE=1 -Iadapter)

if ! "$compiler" -x c -E - <<<$'#include <sodium.h>\n#include <zmq.h>' >/dev/null 2>&1; then
    echo "SKIP zmtp_c_curve: no sodium.h or no zmq.h (Debian's libsodium-dev and libzmq3-dev)"
    exit 0
fi

"$compiler" "${warnings[@]}" "${sanitizers[@]}" "${posix[@]}" "${curve[@]}" -Iinclude src/*.c test/json.c test/party.c test/test_curve.c -lsodium \
    -o "$build/test_curve" && timeout 120 "$build/test_curve" ../vectors/zmtp || failed=1
"$compiler" "${warnings[@]}" "${sanitizers[@]}" "${posix[@]}" "${curve[@]}" -Iinclude src/*.c port/net.c port/posix/*.c test/test_curve_libzmq.c -lsodium -lzmq \
    -o "$build/test_curve_libzmq" && timeout 120 "$build/test_curve_libzmq" || failed=1
exit "$failed"
