# A machine for one test of `x`: an empty home, a copy of `x` in a project of its own, and a PATH that holds only basic
# tools and stand-ins which write down how they were called. No network and no right is needed. Read by `x_*.sh`.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
sandboxes=$(mktemp -d)
trap 'rm -rf "$sandboxes"' EXIT
failures=0

basic_tools=(bash sh env cat cp sed sort head tail tee wc grep awk mkdir mktemp rm chmod dirname realpath curl timeout sleep)

sandbox() { # makes a new machine: root, with a C compiler and apt-get, without Rust
    machine=$(mktemp -d -p "$sandboxes")
    project=$machine/project
    bin=$machine/bin
    calls=$machine/calls
    mkdir -p "$bin" "$machine/home" "$machine/tmp" "$project/xtask/tests"
    : >"$calls"
    cp "$repository/x" "$project/x"
    cp "$repository/xtask/allowed-skips.txt" "$project/xtask/"
    printf '[workspace.package]\nrust-version = "1.95"\n' >"$project/Cargo.toml"
    printf 'echo "ok - a shell test"\n' >"$project/xtask/tests/x_nothing.sh"
    local tool
    for tool in "${basic_tools[@]}"; do ln -s "$(type -P "$tool")" "$bin/$tool"; done
    stand_in id 'echo 0'
    stand_in cc ''
    stand_in apt-get ''
    stand_in nproc 'echo 2'
    stand_in df 'printf "Avail\n104857600\n"'
    stand_in du 'echo 0'
    installer
}

stand_in() { # NAME SCRIPT: a program that writes its call down, then does SCRIPT
    write_stand_in "$bin/$1" "$2"
}

write_stand_in() { # FILE SCRIPT
    mkdir -p "$(dirname "$1")"
    printf '#!/usr/bin/env bash\necho "%s $*" >>"%s"\n%s\n' "$(basename "$1")" "$calls" "$2" >"$1"
    chmod +x "$1"
}

cargo_stand_in() { # FILE VERSION: a cargo whose `build` makes a bodkin that says how it was started
    write_stand_in "$1" '
case "$1" in
    --version) echo "cargo '"$2"' (0123456 2026-01-01)" ;;
    build)
        mkdir -p target/release
        printf "#!/usr/bin/env bash\necho started: \$*\n" >target/release/bodkin
        chmod +x target/release/bodkin ;;
    test) source "'"$machine"'/cargo_test" ;;
esac'
}

installer() { # what stands at BODKIN_RUSTUP_URL: an installer that puts a new cargo into the home
    cargo_stand_in "$machine/new/cargo" 1.95.0
    write_stand_in "$machine/rustup-init" "mkdir -p \"\$HOME/.cargo/bin\" && cp '$machine/new/cargo' \"\$HOME/.cargo/bin/cargo\""
    rustup_url=file://$machine/rustup-init
}

x() { # ARGUMENT...: runs x on the machine; sets $status and $printed
    status=0
    printed=$(cd "$machine" && env -i HOME="$machine/home" PATH="$bin" TMPDIR="$machine/tmp" BODKIN_RUSTUP_URL="$rustup_url" \
        "$project/x" "$@" 2>&1 </dev/null) || status=$?
}

claim() { # NAME: the test that starts here
    claimed=$1
    broken=''
    sandbox
}

expect() { # WHAT COMMAND...: notes WHAT if COMMAND fails
    local what=$1
    shift
    "$@" || broken+="  expected: $what"$'\n'
}

exits() { [[ $status == "$1" ]]; }
fails() { [[ $status != 0 ]]; }
says() { [[ $printed == *"$1"* ]]; }
never_says() { ! says "$1"; }
closes_with() { [[ ${printed##*$'\n'} == "$1" ]]; }
called() { grep -q -- "$1" "$calls"; }
never_called() { ! called "$1"; }
called_in_order() { # PATTERN...
    local pattern line=0 next
    for pattern in "$@"; do
        next=$(tail -n +$((line + 1)) "$calls" | grep -n -- "$pattern") || return 1
        line=$((line + ${next%%:*}))
    done
}

upheld() { # ends a test
    if [[ -z $broken ]]; then
        echo "ok - $claimed"
    else
        failures=$((failures + 1))
        printf 'not ok - %s\n%s  exit status %s, printed:\n%s\n  called:\n%s\n' \
            "$claimed" "$broken" "$status" "$printed" "$(cat "$calls")"
    fi
}

finish() { exit $((failures > 0)); }
