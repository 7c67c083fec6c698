# What the scripts beside it share: compilers' flags, and where things are built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$(realpath -m "${CARGO_TARGET_DIR:-../target}")/zmtp-c
mkdir -p "$build"

compiler=${CC:-cc}
warnings=(-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wcast-qual -Werror)
sanitizers=(-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all)
posix=(-D_POSIX_C_SOURCE=200809L)

# A test's line for whoever counts: its command's output is shown if it fails.
report() { # NAME COMMAND...
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        printf 'ok %s\n' "$name"
    else
        printf '%s\nnot ok %s\n' "$output" "$name"
        failed=1
    fi
}
failed=0
