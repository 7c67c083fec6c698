#!/usr/bin/env bash
# The package for Python: cargo builds its library, and its tests are run by a Python that has numpy: BODKIN_NUMPY, or python3.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${BODKIN_NUMPY:-python3}
if ! "$python" -c 'import numpy' 2>/dev/null; then
    echo "SKIP python_package: no Python with numpy"
    exit 0
fi
build=$(realpath -m "${CARGO_TARGET_DIR:-../target}")/python
cargo build --locked --target-dir "$build"
cargo clippy --locked --target-dir "$build" -- -D warnings

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cp -r bodkin_petri "$place"
cp "$build/debug/lib_engine.so" "$place/bodkin_petri/_engine.abi3.so"

# `test_name (place) ... ok` a test becomes `ok name`.
status=0
cd tests # Where Python begins to look, and the package without its library is not.
PYTHONPATH=$place timeout 300 "$python" -B -m unittest discover --verbose >"$place/told" 2>&1 || status=$?
cat "$place/told"
sed -nE 's/^(test_[a-z0-9_]+) .*\.\.\. ok$/ok python \1/p; s/^(test_[a-z0-9_]+) .*\.\.\. (FAIL|ERROR)$/not ok python \1/p' "$place/told"
exit "$status"
