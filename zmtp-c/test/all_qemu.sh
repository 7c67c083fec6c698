#!/usr/bin/env bash
# The tests of the core on an emulated Cortex-M3, built as for a board, where pointers have four octets and nothing is beneath the library.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"
cross=arm-none-eabi

skip() {
    echo "SKIP zmtp_c_qemu: $*"
    exit 0
}
command -v "$cross-gcc" >/dev/null || skip "no $cross-gcc (Debian's gcc-arm-none-eabi and libnewlib-arm-none-eabi)"
command -v qemu-system-arm >/dev/null || skip "no qemu-system-arm (Debian's qemu-system-arm)"

run() { # NAME FOLDER: a test of the core, with the golden bytes of this folder
    "$cross-gcc" -std=c99 -mcpu=cortex-m3 -mthumb -Os -Iinclude --specs=rdimon.specs -T test/m3/mps2-an385.ld -x c test/m3/start.c src/*.c test/json.c test/party.c \
        "test/$1.c" -o "$build/m3-$1.elf" &&
        timeout 120 qemu-system-arm -machine mps2-an385 -nographic -monitor none -serial none -semihosting-config "enable=on,target=native,arg=$1,arg=$2" \
            -kernel "$build/m3-$1.elf" </dev/null | tee "$build/m3-$1.said" || failed=1
    if grep -q '^not ok' "$build/m3-$1.said" || ! grep -q '^ok' "$build/m3-$1.said"; then failed=1; fi
}

run test_vectors ../vectors/zmtp
run test_hostile .
run test_types .
run test_node ../vectors/wire
run test_subscriber ../vectors/wire
run test_taskfarm .
exit "$failed"
