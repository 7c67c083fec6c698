// Two clouds and a relay, as a browser of one of them sees them. Prints `ok NAME` or `not ok NAME: WHY` a test.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { severeFindings } from "./pages.mjs";
import { place, start } from "./plant.mjs";
import { expect, finish, test } from "./report.mjs";

const { BODKIN, BROWSER, SHOTS } = process.env;
const PATIENCE_MS = 20_000;
/** Until both gatekeepers are at the relay. */
const MEET_MS_MAX = 60_000;
const COMMAND_MS_MAX = 30_000;

const waits = ["--neighbor-timeout-ms", "5000"];
const begin = async (name, flags) => {
    const cloud = await start(BODKIN, ["--cloud", name, "--operator", "test", ...waits, ...flags]);
    const env = { ...process.env, BODKIN_MONITOR: place(cloud.ready, "monitor"), BODKIN_SERVICE_REGISTRY: place(cloud.ready, "serviceregistry") };
    const does = (line) => {
        const words = [...line.split(" "), "--data", cloud.data, "--output", "json"];
        return JSON.parse(execFileSync(BODKIN, words, { env, timeout: COMMAND_MS_MAX, stdio: ["ignore", "pipe", "pipe"] }));
    };
    return { ...cloud, does, monitor: `https://${place(cloud.ready, "monitor")}` };
};
const one = await begin("one", ["--relay-listen", "127.0.0.1:0", "--gateway-is-mandatory", "true"]);
const two = await begin("two", []);
const introduce = (from, to) => {
    const file = join(from.data, "introduction.toml");
    const { fingerprint } = from.does(`cloud introduce --out ${file}`);
    to.does(`cloud add ${file} --fingerprint ${fingerprint}`);
};
const relay = one.ready.listeners.relay;
one.does(`relay add ${relay} --own`);
introduce(one, two);
introduce(two, one);
const meets = async (from, to) => {
    for (const until = Date.now() + MEET_MS_MAX; ; await new Promise((later) => setTimeout(later, 200))) {
        try {
            return from.does(`cloud ping ${to}`);
        } catch (error) {
            if (Date.now() > until) throw error;
        }
    }
};
await meets(two, "one");
await meets(one, "two");
one.does("service add heat --system stove --address 127.0.0.1 --port 9000");
one.does("auth intercloud add --cloud two --provider stove --service heat");

const browser = await chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const systems = join(two.ready.trust, "systems");
const shown = { certPath: join(systems, "sysop.crt"), keyPath: join(systems, "sysop.key") };
const orchestrator = `https://${place(two.ready, "orchestrator")}`;
const clientCertificates = [two.monitor, orchestrator].map((origin) => ({ origin, ...shown }));
const context = await browser.newContext({ ignoreHTTPSErrors: true, clientCertificates, viewport: { width: 1280, height: 1400 } });
context.setDefaultTimeout(PATIENCE_MS);
const page = await context.newPage();
const show = async (hash) => {
    await page.goto(`${two.monitor}/#/${hash}`);
    await page.waitForFunction(() => document.querySelector(".state.live") !== null && document.querySelector(".state.waiting") === null);
};

await test("web_another_cloud_and_its_relay_are_on_the_map", async () => {
    await show("map");
    await page.locator("svg.layers text", { hasText: "cloud test/one" }).first().waitFor();
    await show("clouds");
    await page.getByRole("region", { name: "Table of clouds" }).getByRole("row", { name: /test\/one/ }).getByText("neighbour").waitFor();
    const drawn = page.getByRole("region", { name: "Clouds and where they are met" });
    for (const name of ["test/two", relay, "test/one"]) await drawn.locator("svg text", { hasText: name }).first().waitFor();
    await page.getByRole("region", { name: "Table of relays" }).getByRole("row", { name: relay }).getByText(/^open/).waitFor();
    const findings = await severeFindings(page);
    expect(findings.length === 0, findings.join("; "));
});

await test("web_a_tunnel_to_another_cloud_is_listed", async () => {
    const form = {
        requesterSystem: { systemName: "sysop", address: "127.0.0.1", port: 8000 },
        requestedService: { serviceDefinitionRequirement: "heat" },
        orchestrationFlags: { overrideStore: true, enableInterCloud: true, matchmaking: true },
    };
    const answer = await context.request.post(`${orchestrator}/orchestrator/orchestration`, { data: form });
    const text = await answer.text();
    expect(answer.ok() && text.includes("VIA_GATEWAY"), `${answer.status()} ${text}`);
    await show("clouds");
    const row = page.getByRole("region", { name: "Table of sessions" }).getByRole("row").filter({ hasText: "stove" });
    for (const told of [/sysop of two/, /heat/, relay]) await row.getByText(told).first().waitFor();
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/clouds-tunnel.png`, fullPage: true });
    const findings = await severeFindings(page);
    expect(findings.length === 0, findings.join("; "));
});

await test("web_clouds_are_seen_where_there_is_little_room", async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    await page.emulateMedia({ colorScheme: "dark" });
    await show("clouds");
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(width <= 360, `the page is ${width} px wide`);
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/clouds-narrow.png`, fullPage: true });
    const findings = await severeFindings(page);
    expect(findings.length === 0, findings.join("; "));
});

await browser.close();
await one.stop();
await two.stop();
finish();
