#!/usr/bin/env bash
# The dashboard's sources are sound and decide as they should, and the committed files are what they make, octet for octet.
name=web_build
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
kib_max=300
failed=0

if output=$(npm run --silent check 2>&1); then
    echo "ok web_types"
else
    printf '%s\nnot ok web_types\n' "$output"
    failed=1
fi

node test/units.mjs || failed=1

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
if output=$(npx vite build --outDir "$fresh/dist" --emptyOutDir 2>&1 && diff -rq dist "$fresh/dist" 2>&1); then
    echo "ok web_build"
else
    printf '%s\nnot ok web_build: commit what "npm run build" makes in web/dist\n' "$output"
    failed=1
fi

bytes=$(cat "$fresh"/dist/* | gzip -9 | wc -c)
echo "note the dashboard's files have $(cat "$fresh"/dist/* | wc -c) octets, compressed $bytes"
if ((bytes < kib_max * 1024)); then echo "ok web_size"; else echo "not ok web_size: more than $kib_max KiB compressed"; failed=1; fi
exit "$failed"
