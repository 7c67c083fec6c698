#!/usr/bin/env bash
# With lwIP as Debian has it: both ends of connections over its raw API, and the segments that they take.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"

if ! pkg-config --exists lwip; then
    echo "SKIP zmtp_c_lwip: no lwIP (Debian's liblwip-dev)"
    exit 0
fi
read -ra includes <<<"$(pkg-config --cflags-only-I lwip | sed 's/-I/-isystem /g')"

"$compiler" "${warnings[@]}" "${sanitizers[@]}" "${posix[@]}" -D_DEFAULT_SOURCE -Iinclude "${includes[@]}" src/*.c port/net.c port/lwip/*.c test/test_lwip.c \
    $(pkg-config --libs lwip) -o "$build/test_lwip" && timeout 120 "$build/test_lwip" || failed=1

# Debian's lwIP has a thread of its own; without one (NO_SYS) a turn runs the timers.
report "the lwIP port is built for NO_SYS" "$compiler" "${warnings[@]}" "${posix[@]}" -O1 -Iinclude -Itest/no_sys "${includes[@]}" -fsyntax-only port/net.c port/lwip/zmtp_net.c

# A port is a page or two of code: what it has of lines beside comments.
for port in port/*/zmtp_net.c; do
    lines=$(grep -cvE '^\s*(/\*.*\*/|\*.*|/\*.*|)$' "$port")
    printf 'note %s: %d lines of code, fewer than 150 are promised\n' "$port" "$lines"
    report "$port has fewer than 150 lines of code" test "$lines" -lt 150
done
exit "$failed"
