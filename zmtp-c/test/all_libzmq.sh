#!/usr/bin/env bash
# With libzmq: every pairing of socket types by NULL and PLAIN, and who is faster.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"
peer=(-lzmq -lpthread)

if ! "$compiler" -x c -E - <<<'#include <zmq.h>' >/dev/null 2>&1; then
    echo "SKIP zmtp_c_libzmq: no zmq.h (Debian's libzmq3-dev)"
    exit 0
fi

"$compiler" "${warnings[@]}" "${sanitizers[@]}" "${posix[@]}" -Iinclude src/*.c port/net.c port/posix/*.c test/test_libzmq.c "${peer[@]}" -o "$build/test_libzmq" &&
    timeout 120 "$build/test_libzmq" || failed=1

"$compiler" "${warnings[@]}" "${posix[@]}" -O2 -Iinclude src/*.c port/net.c port/posix/*.c test/throughput.c "${peer[@]}" -o "$build/throughput" &&
    timeout 120 "$build/throughput" 300000 16 5 && echo "ok zmtp-c carries at least as many messages a second as libzmq" ||
    {
        echo "not ok zmtp-c carries at least as many messages a second as libzmq"
        failed=1
    }
exit "$failed"
