#!/usr/bin/env bash
# A browser uses every page of the dashboard, with a live cloud and real traffic. BODKIN: the binary; SHOTS: a folder for screenshots.
name=web_browser
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
BODKIN=${BODKIN:-$target/debug/bodkin}
[[ -x $BODKIN ]] || skip "no bodkin at $BODKIN: cargo build --package bodkin"
for browser in chromium chromium-browser google-chrome google-chrome-stable; do
    BROWSER=$(command -v "$browser") && break
done
[[ -n ${BROWSER-} ]] || skip "no Chromium is installed"
export BODKIN BROWSER
failed=0
timeout 300 node test/browser.mjs || failed=1
timeout 300 node test/stubbed.mjs || failed=1
timeout 120 node test/readers.mjs || failed=1
timeout 300 node test/secure.mjs || failed=1
timeout 300 node test/clouds.mjs || failed=1
timeout 120 node test/pair.mjs || failed=1
timeout 120 node test/edges.mjs || failed=1
timeout 300 node test/servers.mjs || failed=1
exit "$failed"
