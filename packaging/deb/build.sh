#!/usr/bin/env bash
# Builds bodkin_VERSION_ARCHITECTURE.deb in the folder that is named (target/deb if none is): the binary, its unit and user, the commented configuration,
# manual pages and completions out of the binary itself, the documentation, and the licences of what is inside. BODKIN: a binary that is built already. COMPRESSION: none, gzip, xz (as it is without one) or zstd.
set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
root=$(realpath "$here/../..")
cd "$root"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
out=$(realpath -m "${1:-$target/deb}")

for tool in dpkg-deb dpkg gzip strip cargo; do
    command -v "$tool" >/dev/null || { echo "packaging/deb/build.sh: $tool is missing (Debian's dpkg, gzip and binutils; a Rust toolchain, also to say what is inside the binary)" >&2; exit 1; }
done
if [[ -z ${BODKIN-} ]]; then
    cargo build --locked --release --package bodkin
    BODKIN=$target/release/bodkin
fi
version=$("$BODKIN" --version | awk '{print $2}')
architecture=$(dpkg --print-architecture)

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
# It becomes the package's root, which everybody may enter.
chmod 0755 "$stage"
put() { install -D --mode="$1" "$2" "$stage/$3"; }

put 0755 "$BODKIN" usr/bin/bodkin
strip --strip-unneeded "$stage/usr/bin/bodkin"
put 0644 "$here/bodkin.service" usr/lib/systemd/system/bodkin.service
put 0644 "$here/bodkin.sysusers" usr/lib/sysusers.d/bodkin.conf
put 0644 bodkin.example.toml etc/bodkin/bodkin.toml
sed --in-place 's|^data = .*|data = "/var/lib/bodkin"|' "$stage/etc/bodkin/bodkin.toml"
grep --quiet '^data = "/var/lib/bodkin"$' "$stage/etc/bodkin/bodkin.toml" || { echo "bodkin.example.toml has no data" >&2; exit 1; }
put 0644 LICENSE-MIT usr/share/doc/bodkin/LICENSE-MIT
put 0644 LICENSE-APACHE usr/share/doc/bodkin/LICENSE-APACHE
# As they lie in the tree, so that their links are right.
for page in README.md SECURITY.md bodkin.example.toml python/README.md; do put 0644 "$page" "usr/share/doc/bodkin/$page"; done
while IFS= read -r page; do put 0644 "$page" "usr/share/doc/bodkin/$page"; done < <(find docs -type f | sort)
put 0644 zmtp-c/README.md usr/share/doc/bodkin/zmtp-c/README.md
cargo xtask notices | gzip --best --no-name >"$stage/usr/share/doc/bodkin/third-party.gz"
gzip --best --no-name <CHANGELOG.md >"$stage/usr/share/doc/bodkin/changelog.gz"
cat >"$stage/usr/share/doc/bodkin/copyright" <<'TEXT'
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
License: MIT or Apache-2.0
 Either licence, at your choice; their texts are beside this file.
Comment: The licences of what is linked into the binary are in third-party.gz.
TEXT

mkdir -p "$stage"/usr/share/{man/man1,bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
# A page for the command, and one for each command below it, at any depth.
pages() {
    "$BODKIN" man "$@" | gzip --best --no-name >"$stage/usr/share/man/man1/$(IFS=-; echo "bodkin${*:+-$*}").1.gz"
    local below
    for below in $("$BODKIN" "$@" --help | awk '/^Commands:/ {list = 1; next} /^$/ {list = 0} list && /^  [a-z]/ {print $1}'); do
        if [[ $below != help ]]; then pages "$@" "$below"; fi
    done
}
pages
"$BODKIN" completions bash >"$stage/usr/share/bash-completion/completions/bodkin"
"$BODKIN" completions zsh >"$stage/usr/share/zsh/vendor-completions/_bodkin"
"$BODKIN" completions fish >"$stage/usr/share/fish/vendor_completions.d/bodkin.fish"

# The newest symbol of the C library that the binary asks for.
glibc=$(strings "$stage/usr/bin/bodkin" | grep --only-matching '^GLIBC_[0-9.]*$' | sort --version-sort | tail -n 1)
mkdir "$stage/DEBIAN"
cat >"$stage/DEBIAN/control" <<TEXT
Package: bodkin
Version: $version
Architecture: $architecture
Maintainer: The Bodkin maintainers <maintainers@bodkin.invalid>
Installed-Size: $(du --summarize --block-size=1024 "$stage" | cut -f 1)
Depends: libc6 (>= ${glibc#GLIBC_}), libgcc-s1, adduser | systemd | systemd-standalone-sysusers
Recommends: systemd (>= 253)
Section: net
Priority: optional
Description: local cloud for the industrial Internet of Things
 Service Registry, Authorization, Orchestrator and Event Handler, compatible with
 Eclipse Arrowhead 4.x, and a real-time broker with deadlines, bounds on losses and
 fail-over, in one process without a database server.
TEXT
echo /etc/bodkin/bodkin.toml >"$stage/DEBIAN/conffiles"
for script in postinst prerm postrm; do install --mode=0755 "$here/$script" "$stage/DEBIAN/$script"; done
(cd "$stage" && find usr -type f -print0 | sort --zero-terminated | xargs --null md5sum >DEBIAN/md5sums)

mkdir -p "$out"
package=$out/bodkin_${version}_$architecture.deb
dpkg-deb --build --root-owner-group "-Z${COMPRESSION:-xz}" "$stage" "$package"
echo "$package"
