# What the scripts beside it share: the packages, and how a test skips itself.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-../target}")

skip() {
    echo "SKIP $name: $*"
    exit 0
}

command -v node >/dev/null && command -v npm >/dev/null || skip "no node or no npm (Debian's nodejs and npm)"
node -e 'const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)' ||
    skip "node $(node --version) is older than 20.19"
# As the lock file says; again where it has changed.
if ! cmp -s package-lock.json node_modules/.bodkin-lock; then
    npm ci --no-audit --no-fund --ignore-scripts >/dev/null 2>&1 || skip "npm could not fetch the packages of web/package-lock.json: is there a network?"
    cp package-lock.json node_modules/.bodkin-lock
fi
