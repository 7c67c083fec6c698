#!/usr/bin/env bash
# The package for Python, as it is given away: maturin builds a wheel, and a Python that has numpy runs the tests with what is in it: BODKIN_NUMPY, or python3. Where
# that has no maturin, neither beside it nor in the path, cargo builds the library alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${BODKIN_NUMPY:-python3}
if ! "$python" -c 'import numpy' 2>/dev/null; then
    echo "SKIP python_package: no Python with numpy"
    exit 0
fi
build=$(realpath -m "${CARGO_TARGET_DIR:-../target}")/python
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
maturin=$(dirname "$("$python" -c 'import sys; print(sys.executable)')")/maturin
[[ -x $maturin ]] || maturin=$(command -v maturin) || maturin=
if [[ -n $maturin ]]; then
    CARGO_TARGET_DIR=$build "$maturin" build --quiet --locked --interpreter "$python" --out "$place/wheels"
    "$python" -m zipfile -e "$place"/wheels/bodkin_petri-*.whl "$place"
    for file in _engine.abi3.so _engine.pyi py.typed __init__.py; do
        [[ -e $place/bodkin_petri/$file ]] || { echo "not ok python the wheel has no $file"; exit 1; }
    done
    echo "ok python wheel"
else
    cargo build --locked --target-dir "$build"
    cp -r bodkin_petri "$place"
    cp "$build/debug/lib_engine.so" "$place/bodkin_petri/_engine.abi3.so"
fi
cargo clippy --locked --target-dir "$build" -- -D warnings

# `test_name (place) ... ok` a test becomes `ok name`.
status=0
cd tests # Where Python begins to look, and the package without its library is not.
PYTHONPATH=$place timeout 300 "$python" -B -m unittest discover --verbose >"$place/told" 2>&1 || status=$?
cat "$place/told"
sed -nE 's/^(test_[a-z0-9_]+) .*\.\.\. ok$/ok python \1/p; s/^(test_[a-z0-9_]+) .*\.\.\. (FAIL|ERROR)$/not ok python \1/p' "$place/told"
exit "$status"
