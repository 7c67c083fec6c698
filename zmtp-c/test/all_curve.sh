#!/usr/bin/env bash
# CURVE of both ends: the golden conversations and changed octets, by libsodium and by functions of NaCl's form, and either end of libzmq. TWEETNACL=DIR, a folder with tweetnacl.c and
# tweetnacl.h, takes those of TweetNaCl.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"
curve=(-DZMTP_WITH_CURVE=1 -DZMTP_WITH_CURVE_SERVER=1 -Iadapter)
peers=(-lzmq -lsodium)

if ! "$compiler" -x c -E - <<<$'#include <sodium.h>\n#include <zmq.h>' >/dev/null 2>&1; then
    echo "SKIP zmtp_c_curve: no sodium.h or no zmq.h (Debian's libsodium-dev and libzmq3-dev)"
    exit 0
fi

test_curve() { # NAME OPTION...: the golden conversations, with these compiler's options besides
    "$compiler" "${warnings[@]}" "${sanitizers[@]}" "${posix[@]}" "${curve[@]}" -Iinclude src/*.c test/json.c test/party.c test/nacl.c test/test_curve.c "${@:2}" -lsodium \
        -o "$build/$1" && timeout 120 "$build/$1" ../vectors/zmtp || failed=1
}

test_curve test_curve
if [[ -n ${TWEETNACL:-} ]]; then
    "$compiler" -O2 -w -c "$TWEETNACL/tweetnacl.c" -o "$build/tweetnacl.o"
    test_curve test_curve_tweetnacl -DTWEETNACL -isystem "$TWEETNACL" "$build/tweetnacl.o"
fi
"$compiler" "${warnings[@]}" "${sanitizers[@]}" "${posix[@]}" "${curve[@]}" -Iinclude src/*.c port/net.c port/posix/*.c test/test_curve_libzmq.c "${peers[@]}" \
    -o "$build/test_curve_libzmq" && timeout 120 "$build/test_curve_libzmq" || failed=1
"$compiler" "${warnings[@]}" "${sanitizers[@]}" "${posix[@]}" "${curve[@]}" -Iinclude src/*.c port/net.c port/posix/*.c test/test_libzmq.c "${peers[@]}" -lpthread \
    -o "$build/test_libzmq_curve" && timeout 120 "$build/test_libzmq_curve" || failed=1
exit "$failed"
