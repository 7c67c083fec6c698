#!/usr/bin/env bash
# `x test`: what it runs, how it counts, when it fails.
source "$(dirname "${BASH_SOURCE[0]}")/sandbox.sh"

prepare() { # CLAIM, then on standard input what the stand-in's `cargo test` does
    claim "$1"
    cargo_stand_in "$bin/cargo" 1.95.0
    cat >"$machine/cargo_test"
}

# The six checks (formatting, lints, imports, licences, tree, simulation) and the project's one shell test pass on every machine here.

prepare "x test makes every check and sums up all results" <<'EOT'
echo '     Running unittests src/lib.rs (target/debug/deps/a-1)'
echo 'test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'
echo '   Doc-tests a'
echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'
EOT
x test
expect "success" exits 0
expect "6 checks, 7 tests, 1 shell test" closes_with "14 passed, 0 failed, 0 skipped"
expect "the order" called_in_order "^cargo fmt --check" "^cargo clippy .*-D warnings" "^cargo xtask imports" "^cargo xtask licences" \
    "^cargo xtask tree" "^cargo test .*--workspace" "^cargo run .*--package bodkin -- simulate --seed [0-9]* --seconds 60"
expect "seconds" says "x: tests: ok after "
expect "the log" grep -q "Doc-tests a" "$project/target/x-test.log"
expect "no foreign systems" never_called "--test peers"
upheld

prepare "x test shows what failed, and counts it" <<'EOT'
echo '     Running tests/a.rs (target/debug/deps/a-1)'
echo 'test quick ... ok'
echo 'test slow ... FAILED'
echo 'thread slow panicked at the disco'
echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out'
exit 101
EOT
x test
expect "failure" fails
expect "the panic" says "panicked at the disco"
expect "the count" closes_with "8 passed, 1 failed, 0 skipped"
upheld

prepare "x test runs what failed once more, alone, and says who passed then" <<'EOT'
echo '     Running tests/a.rs (target/debug/deps/a-1)'
if [[ "$*" == *"--exact slow::one --test-threads 1" ]]; then
    echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out'
elif [[ "$*" == *"--exact bad::two --test-threads 1" ]]; then
    printf 'failures:\n    bad::two\n\n'
    echo 'test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 2 filtered out'
    exit 101
else
    printf 'failures:\n\n---- slow::one stdout ----\nlate\n\nfailures:\n    bad::two\n    slow::one\n\n'
    echo 'test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out'
    exit 101
fi
EOT
x test
expect "failure" fails
expect "who passed" says "UNSTEADY slow::one: failed beside others, passed alone"
expect "that it is a defect" says "1 of those that passed did so on a second run only"
expect "the one that failed again" never_says "UNSTEADY bad::two"
expect "the count" closes_with "9 passed, 1 failed, 0 skipped"
upheld

prepare "x test takes many failures for no accident" <<'EOT'
echo '     Running tests/a.rs (target/debug/deps/a-1)'
printf 'failures:\n    a\n    b\n    c\n    d\n    e\n    f\n\n'
echo 'test result: FAILED. 0 passed; 6 failed; 0 ignored; 0 measured; 0 filtered out'
exit 101
EOT
x test
expect "failure" fails
expect "no second run" never_called "--exact"
expect "the count" closes_with "7 passed, 6 failed, 0 skipped"
upheld

prepare "x test ends what takes too long, and says so" <<'EOT'
echo '     Running tests/a.rs (target/debug/deps/a-1)'
echo 'test hangs has been running for over 60 seconds'
exec sleep 60
EOT
sed -i 's/^test_seconds_max=.*/test_seconds_max=2/' "$project/x"
x test
expect "failure" fails
expect "which" says "test hangs has been running for over 60 seconds"
expect "why" says "are over that all of this may take"
upheld

prepare "x test counts a test program that died without a result" <<'EOT'
echo '     Running tests/a.rs (target/debug/deps/a-1)'
echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'
echo '   Doc-tests with two results'
echo 'test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'
echo 'test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'
echo '     Running tests/b.rs (target/debug/deps/b-1)'
echo 'error: test failed (signal: 6, SIGABRT)'
echo '     Running tests/c.rs (target/debug/deps/c-1)'
echo 'test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out'
exit 101
EOT
x test
expect "failure" fails
expect "the count" closes_with "8 passed, 2 failed, 0 skipped"
upheld

prepare "x test fails when the tests do not compile" <<'EOT'
echo 'error[E0308]: mismatched types'
exit 101
EOT
x test
expect "failure" fails
expect "the compiler's words" says "mismatched types"
expect "the count" closes_with "7 passed, 1 failed, 0 skipped"
upheld

prepare "x test fails when a check fails, and goes on" <<'EOT'
echo '     Running tests/a.rs (target/debug/deps/a-1)'
echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'
EOT
stand_in cargo "if [[ \$1 == clippy && \$2 != --version ]]; then echo 'a lint'; exit 101; fi; exec '$machine/new/cargo' \"\$@\""
x test
expect "failure" fails
expect "the lint" says "a lint"
expect "the count" closes_with "7 passed, 1 failed, 0 skipped"
upheld

prepare "x test fails on a test that is ignored, with its reason" <<'EOT'
echo '     Running tests/a.rs (target/debug/deps/a-1)'
echo 'test races::far ... ignored, needs a second machine'
echo 'test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out'
EOT
x test
expect "failure" fails
expect "name and reason" says "SKIP races::far: needs a second machine (not in xtask/allowed-skips.txt"
expect "the count" closes_with "8 passed, 0 failed, 1 skipped"
upheld

prepare "x test fails on a test that skips itself, and does not count it as passed" <<'EOT'
echo '     Running tests/a.rs (target/debug/deps/a-1)'
echo 'SKIP sensors::hot: no thermal zone' >>"$BODKIN_SKIPS"
echo 'test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'
EOT
x test
expect "failure" fails
expect "name and reason" says "SKIP sensors::hot: no thermal zone (not in"
expect "the count" closes_with "10 passed, 0 failed, 1 skipped"
echo 'sensors::hot' >>"$project/xtask/allowed-skips.txt"
x test
expect "success once it is allowed" exits 0
expect "it is still said" says "SKIP sensors::hot: no thermal zone (allowed)"
expect "the same count" closes_with "10 passed, 0 failed, 1 skipped"
upheld

peers='
echo "     Running tests/peers/main.rs (target/debug/deps/peers-1)"
if [[ "$*" == *--ignored* ]]; then
    echo "tests with BODKIN_TEST_ALL=${BODKIN_TEST_ALL-}"
    echo "test chromium ... ok"
    echo "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out"
else
    echo "test chromium ... ignored, peer: ./x test --all"
    echo "test result: ok. 0 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out"
fi'

prepare "x test leaves out the tests with foreign systems without calling them skipped" <<<"$peers"
x test
expect "success" exits 0
expect "the count" closes_with "7 passed, 0 failed, 0 skipped"
expect "no browser installed" never_called "^apt-get"
upheld

prepare "x test --all installs chromium and runs the tests with foreign systems" <<<"$peers"
x test --all
expect "success" exits 0
expect "the browser, then the tests" called_in_order "^apt-get install .*chromium" "^cargo test .*--package bodkin --test peers -- --ignored"
expect "the gate is open" grep -q "BODKIN_TEST_ALL=1" "$project/target/x-test.log"
expect "the count" closes_with "8 passed, 0 failed, 0 skipped"
upheld

prepare "x test --all runs one more test with foreign systems at a time than there are cores" <<'EOT'
echo "threads: ${RUST_TEST_THREADS-as many as cores} $*"
echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'
EOT
x test --all
expect "success" exits 0
expect "the other tests" grep -q "threads: as many as cores .*--workspace" "$project/target/x-test.log"
expect "those with foreign systems" grep -q "threads: 3 .*--test peers" "$project/target/x-test.log"
upheld

prepare "x test --all does not begin on a disk that will be full" <<<"$peers"
stand_in df 'printf "Avail\n7340032\n"'
x test --all
expect "failure" fails
expect "what is there and what is needed" says "has 7 GiB free, and \`x test --all\` needs 20 GiB"
expect "no test" never_called "^cargo test"
stand_in du 'echo 20971520 target'
x test --all
expect "success where the build is there already" exits 0
upheld

prepare "x test --all installs what containers of the package are made with, where it is not there" <<<"$peers"
stand_in buildah ''
x test --all
expect "success" exits 0
expect "systemd-nspawn, in front of the tests" called_in_order "^apt-get install .*systemd-container" "^cargo test .*--test peers"
expect "buildah is there" never_called "^apt-get install .*buildah"
rm "$bin/buildah"
x test --all
expect "success without it" exits 0
expect "buildah" called_in_order "^apt-get install .*buildah" "^cargo test .*--test peers"
upheld

prepare "x test --all goes on without a browser, and says so" <<<"$peers"
stand_in apt-get "exit 100"
x test --all
expect "success: the tests decide whether they skip themselves" exits 0
expect "why" says "no chromium: the tests that need a browser will be skipped"
expect "why no service" says "no systemd-nspawn: the test of the Debian package's service will be skipped"
expect "why no image" says "no buildah: the test of the container images will be skipped"
expect "the same of what pip installs" says "no schemathesis: the test that needs it will be skipped"
upheld

prepare "x test --all installs Python's packages by pip into the build directory" <<<"$peers"
stand_in python3 "
if [[ \$2 == venv ]]; then
    mkdir -p \"\$3/bin\"
    printf '#!/usr/bin/env bash\necho \"pip \$*\" >>\"$calls\"\n' >\"\$3/bin/pip\"
    chmod +x \"\$3/bin/pip\"
fi"
x test --all
expect "success" exits 0
expect "the environment, then the tests" called_in_order "^python3 -m venv .*/target/schemathesis" "^cargo test .*--test peers"
expect "the package at its version" called "^pip install --quiet schemathesis==4"
expect "another environment for the other one" called_in_order "^python3 -m venv .*/target/joserfc" "^pip install --quiet joserfc==1"
expect "a package with what it needs in a certain version" called_in_order "^python3 -m venv .*/target/arrowhead_client" \
    "^pip install --quiet arrowhead-client==0.* pydantic<2"
expect "no package of Debian's" never_called "^apt-get install .*python3"
upheld

prepare "x test adds the formatter and the linter where rustup can" <<<"$peers"
stand_in cargo "if [[ \"\$2\" == --version && ! -e '$machine/\$1' ]]; then exit 1; fi; exec '$machine/new/cargo' \"\$@\""
stand_in rustup "case \$3 in rustfmt) echo >'$machine/fmt' ;; clippy) echo >'$machine/clippy' ;; esac"
x test
expect "success" exits 0
expect "both, before the checks" called_in_order "^rustup component add rustfmt" "^rustup component add clippy" "^cargo fmt --check"
upheld

prepare "x test says what to do where the linter is missing and there is no rustup" <<<"$peers"
stand_in cargo "if [[ \"\$1\" == clippy ]]; then exit 1; fi; exec '$machine/new/cargo' \"\$@\""
x test
expect "failure" fails
expect "what to do" says "error: 'cargo clippy' is missing: install it where your cargo came from"
expect "no test" never_called "^cargo test"
upheld

prepare "x test counts a shell test that fails, and one that dies" <<<"$peers"
printf 'echo "ok - one"; echo "not ok - two"; exit 1\n' >"$project/xtask/tests/x_bad.sh"
printf 'echo "ok - one"; exit 9\n' >"$project/xtask/tests/x_dead.sh"
x test
expect "failure" fails
expect "which" says "not ok - two"
expect "the count" closes_with "9 passed, 2 failed, 0 skipped"
upheld

prepare "x test runs a shell test that fails once more, and says if it passed then" <<<"$peers"
printf 'if [[ -e "%s/seen" ]]; then echo "ok - one"; else echo >"%s/seen"; echo "not ok - one"; exit 1; fi\n' "$machine" "$machine" >"$project/xtask/tests/x_late.sh"
x test
expect "success" exits 0
expect "which" says "UNSTEADY xtask/tests/x_late.sh: failed, and passed when it ran again"
expect "that it is a defect" says "1 of those that passed did so on a second run only"
expect "the count" closes_with "8 passed, 0 failed, 0 skipped"
upheld

prepare "x test refuses an option it does not know" <<<"$peers"
x test --everything
expect "the exit code of wrong usage" exits 2
expect "nothing done" test ! -s "$calls"
upheld

finish
