#!/usr/bin/env bash
# `x` on machines where something is missing: what it installs, what it says, where it stops.
source "$(dirname "${BASH_SOURCE[0]}")/sandbox.sh"

claim "x installs Rust where there is none, builds, and starts the demo"
x run --once
expect "success" exits 0
expect "the installation is said" says "x: no cargo 1.95 or newer: installing Rust into $machine/home/.cargo"
expect "the build is said" says "x: cargo build --release"
expect "the installer may not ask" called "^rustup-init -y "
expect "formatter and linter come along" called "^rustup-init .*--component rustfmt --component clippy"
expect "installer, then build" called_in_order "^rustup-init" "^cargo build --release --locked"
expect "the demo gets its argument" closes_with "started: demo --once"
expect "nothing asked of apt" never_called "^apt-get"
upheld

claim "x calls the installer once: the second run finds its cargo"
x run
: >"$calls"
rustup_url=file://$machine/gone
x run
expect "success" exits 0
expect "no installer" never_called "^rustup-init"
expect "a build" called "^cargo build"
upheld

claim "x takes no cargo that is too old"
cargo_stand_in "$bin/cargo" 1.94.1
x bench register
expect "success" exits 0
expect "installer, then build" called_in_order "^cargo --version" "^rustup-init" "^cargo build"
expect "the bench is started" closes_with "started: bench register"
upheld

claim "x takes a cargo that is new enough, and knows that 1.100 is newer than 1.95"
cargo_stand_in "$bin/cargo" 1.100.0
x run
expect "success" exits 0
expect "no installer" never_called "^rustup-init"
upheld

claim "x does not accept an installer that leaves an old cargo"
cargo_stand_in "$machine/new/cargo" 1.70.0
x run
expect "failure" fails
expect "what is wrong" says "error: there is still no cargo 1.95 or newer"
expect "no build" never_called "^cargo build"
upheld

claim "x says so when the installer cannot be reached, and stops"
rustup_url=file://$machine/gone
x run
expect "failure" fails
expect "where it tried" says "error: the Rust installer could not be fetched from $rustup_url: is there a network?"
expect "no build" never_called "^cargo"
upheld

claim "x says so when the installer fails, and stops"
write_stand_in "$machine/rustup-init" "exit 7"
x run
expect "failure" fails
expect "what failed" says "error: the Rust installer of $rustup_url failed"
upheld

claim "x asks rustup, not the installer, where rustup has an old default"
cargo_stand_in "$bin/cargo" 1.70.0
stand_in rustup "cp '$machine/new/cargo' '$bin/cargo'"
x run
expect "success" exits 0
expect "rustup, then build" called_in_order "^rustup toolchain install stable" "^cargo build"
expect "no installer" never_called "^rustup-init"
upheld

claim "x uses rustup's stable toolchain beside an older default without asking anyone"
cargo_stand_in "$machine/new/cargo" 1.95.0
cargo_stand_in "$machine/old/cargo" 1.70.0
stand_in cargo "if [[ \${RUSTUP_TOOLCHAIN-} == stable ]]; then exec '$machine/new/cargo' \"\$@\"; fi; exec '$machine/old/cargo' \"\$@\""
stand_in rustup "exit 1"
x run
expect "success" exits 0
expect "no rustup" never_called "^rustup "
upheld

claim "x installs a C compiler, as root, after one apt-get update"
rm "$bin/cc" "$bin/curl"
stand_in apt-get "case \"\$*\" in *gcc*) ln -s '$(type -P true)' '$bin/cc' ;; *curl*) ln -s '$(type -P curl)' '$bin/curl' ;; esac"
ln -s "$(type -P ln)" "$bin/ln"
x run
expect "success" exits 0
expect "the step is said" says "x: apt-get install gcc libc6-dev"
expect "update, compiler, curl" called_in_order "^apt-get update" "^apt-get install .*gcc libc6-dev" "^apt-get install .*curl ca-certificates"
expect "one update" test "$(grep -c '^apt-get update' "$calls")" == 1
upheld

claim "x replaces a C compiler that has no headers"
stand_in cc "exit 1"
stand_in apt-get "case \"\$*\" in *libc6-dev*) cp '$(type -P true)' '$bin/cc' ;; esac"
x run
expect "success" exits 0
expect "the package" called "^apt-get install .*libc6-dev"
upheld

claim "x goes through sudo when not root"
rm "$bin/cc"
stand_in id 'echo 1000'
stand_in sudo '"$@"'
stand_in apt-get "case \"\$*\" in *gcc*) cp '$(type -P true)' '$bin/cc' ;; esac"
x run
expect "success" exits 0
expect "sudo for both" called_in_order "^sudo apt-get update" "^sudo env .*apt-get install"
upheld

claim "x without root and sudo says what root has to install"
rm "$bin/cc"
stand_in id 'echo 1000'
x run
expect "failure" fails
expect "what to do" says "error: not root, and no sudo: have root run 'apt-get install gcc libc6-dev'"
expect "no apt-get" never_called "^apt-get"
upheld

claim "x on another system than Debian says which packages it needs"
rm "$bin/cc" "$bin/apt-get"
x run
expect "failure" fails
expect "what to do" says "error: this is not Debian (no apt-get): install what Debian calls 'gcc libc6-dev'"
upheld

claim "x says so when apt-get has no network, and stops"
rm "$bin/cc"
stand_in apt-get "exit 100"
x run
expect "failure" fails
expect "what failed" says "error: apt-get update failed: is there a network? Needed packages: gcc libc6-dev"
expect "no build" never_called "^cargo"
upheld

claim "x stops when the build fails"
write_stand_in "$bin/cargo" "[[ \$1 == --version ]] && echo 'cargo 1.95.0' || exit 101"
x run
expect "failure" fails
expect "what failed" says "error: the build failed"
upheld

claim "x refuses a word it does not know, and names those it knows"
x install
expect "the exit code of wrong usage" exits 2
expect "the usage" says "./x test [--all]"
expect "nothing done" test ! -s "$calls"
upheld

finish
