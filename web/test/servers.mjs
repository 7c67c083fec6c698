// What the dashboard shows of servers of others: the nodes of one cloud on PostgreSQL with NATS between them, and a fleet's stream. Prints `ok NAME`, `not ok NAME: WHY` or
// `SKIP NAME: REASON` a test. BODKIN_NATS_SERVER names the NATS server.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { PAGES, severeFindings } from "./pages.mjs";
import { place, start } from "./plant.mjs";
import { expect, finish, test } from "./report.mjs";
import { windows } from "./window.mjs";

const { BODKIN, BROWSER, SHOTS, BODKIN_NATS_SERVER } = process.env;
const PATIENCE_MS = 20_000;
const READY_MS_MAX = 60_000;
const inTree = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

const hasNats = BODKIN_NATS_SERVER !== undefined && existsSync(BODKIN_NATS_SERVER);
const hasPostgres = spawnSync("bash", ["-c", "compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || command -v postgres >/dev/null"]).status === 0;
const skip = (name, reason) => console.log(`SKIP ${name}: ${reason}`);

const browser = await chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const scratch = await mkdtemp("/tmp/bodkin-servers-");
// PostgreSQL's user has to come to what is in it.
await chmod(scratch, 0o755);

/** Everything that was begun, in this order, and is ended in the other one. */
const begun = [];
const begin = (program, words, options = {}) => {
    const child = spawn(program, words, { stdio: ["ignore", "pipe", "ignore"], ...options });
    begun.push(child);
    return child;
};
const end = async (child, signal) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
};
/** What a process has printed, when this is in it. */
const says = (child, expected) =>
    new Promise((resolve, reject) => {
        let text = "";
        const late = setTimeout(() => reject(new Error(`it does not say ${expected}: ${text}`)), READY_MS_MAX);
        child.once("exit", (code) => reject(new Error(`it ended with ${code}: ${text}`)));
        child.stdout.on("data", (chunk) => {
            if (!(text += chunk).includes(expected)) return;
            clearTimeout(late);
            resolve(text);
        });
    });
/** An offset at which all standard ports are free, and held while this process is there. */
const heldOffset = async () => Number(await says(begin("perl", [inTree("packaging/test/held_offset.pl")], { stdio: ["pipe", "pipe", "ignore"] }), "\n"));

/** Whether a page has room, and keeps nobody out. */
const isUsable = async (page) => {
    for (const [width, colorScheme] of [
        [1280, "light"],
        [360, "dark"],
    ]) {
        await page.setViewportSize({ width, height: 900 });
        await page.emulateMedia({ colorScheme });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        expect(wide <= 0, `the page is ${wide} px wider than a window of ${width}`);
        const findings = await severeFindings(page);
        expect(findings.length === 0, `${width} px, ${colorScheme}: ${findings.join("; ")}`);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
};
const shoot = async (page, name) => SHOTS && page.screenshot({ path: `${SHOTS}/${name}.png`, fullPage: true });

const NODES = "web_nodes_on_one_database_are_shown_and_a_silent_one_is_told";
if (!hasNats) skip(NODES, "there is no nats-server (BODKIN_NATS_SERVER)");
else if (!hasPostgres) skip(NODES, "no PostgreSQL server");
else
    await test(NODES, async () => {
        const offsets = [await heldOffset(), await heldOffset(), await heldOffset()];
        const nats = 5571 + (await heldOffset());
        const script = begin(inTree("packaging/try/several-nodes.sh"), [join(scratch, "nodes")], {
            env: { ...process.env, BODKIN, OFFSETS: offsets.join(" "), NATS_PORT: String(nats) },
        });
        try {
            const told = await says(script, "Ctrl-C here stops everything");
            const process_of = (name) => Number(new RegExp(`^${name} +process (\\d+)`, "m").exec(told)[1]);
            const { open, show, settle } = windows(browser, `http://127.0.0.1:${8440 + offsets[0]}/`, PATIENCE_MS);
            const { page, said, close } = await open();
            await show(page, "overview");
            await settle(page);
            await page.getByText("Nodes of this cloud share a database, and each of them serves it.").waitFor();
            const nodes = page.getByRole("region", { name: "Table of nodes" });
            await page.waitForFunction(() => [...document.querySelectorAll("td")].filter(({ textContent }) => textContent.includes("running")).length === 3);
            for (const offset of offsets) await nodes.getByRole("link", { name: `127.0.0.1:${8440 + offset}` }).waitFor();
            expect((await nodes.getByText("this node").count()) === 1, "one of them is this node");
            const crossing = page.getByRole("region", { name: "Events from node to node" });
            await crossing.getByText("Live subscribers hear what is published at any node.").waitFor();
            // What another node publishes is heard.
            const at = (port, path, body) => fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
            const sensor = { systemName: "sensor", address: "127.0.0.1", port: 9000 };
            expect((await at(8443 + offsets[1], "/serviceregistry/register-system", sensor)).ok, "it is registered");
            for (let number = 0; number < 5; number += 1) await at(8455 + offsets[1], "/eventhandler/publish", { eventType: "heat", source: sensor, payload: String(number) });
            await crossing.locator("div", { hasText: /^Heard\s*5/ }).first().waitFor();
            await isUsable(page);
            await shoot(page, "nodes");
            for (const name of PAGES) {
                await show(page, name);
                await settle(page);
                expect((await page.locator(".state.lost").count()) === 0, `${name}: ${await page.locator(".why").allTextContents()}`);
                // A stage that was passed too seldom has no law, and is answered 409.
                const wrong = said.filter((line) => !line.includes("409 (Conflict)"));
                expect(wrong.length === 0, `${name}: ${wrong.join("; ")}`);
            }
            await show(page, "audit?node=all");
            await settle(page);
            const logs = page.getByRole("region", { name: "Table of logs" });
            for (const number of [1, 2, 3]) await logs.getByRole("row").nth(number).getByText("whole").waitFor();
            await page.getByRole("region", { name: "Table of entries" }).getByRole("columnheader", { name: "Node" }).waitFor();
            await isUsable(page);
            await shoot(page, "nodes-audit");
            await show(page, "overview");
            await settle(page);
            process.kill(process_of("node 3"), "SIGKILL");
            await nodes.getByText("unreachable").waitFor();
            await page.getByText(/node of this cloud is silent|nodes of this cloud are silent/).waitFor();
            process.kill(process_of("NATS"), "SIGKILL");
            await page.getByText("NATS is not reached, or its stream takes or gives nothing: live subscribers hear only what is published at their own node. Look").waitFor();
            await shoot(page, "nodes-silent");
            await close();
        } finally {
            await end(script, "SIGTERM");
        }
    });

const FLEET = "web_events_for_a_fleet_are_shown_while_its_server_comes_and_goes";
if (!hasNats) skip(FLEET, "there is no nats-server (BODKIN_NATS_SERVER)");
else
    await test(FLEET, async () => {
        const port = String(5571 + (await heldOffset()));
        const serve = () => begin(BODKIN_NATS_SERVER, ["--addr", "127.0.0.1", "--port", port, "--jetstream", "--store_dir", join(scratch, "jetstream")]);
        let server = serve();
        const config = join(scratch, "fleet.toml");
        await writeFile(config, `[fleet]\nservers = ["nats://127.0.0.1:${port}"]\nedge = "edge-7"\ncreate_replicas = 1\nlanes = { events = ["heat"], alarms = ["alarm"] }\n`);
        const cloud = await start(BODKIN, ["--insecure", "--config", config]);
        try {
            const { open, show, settle } = windows(browser, `http://${place(cloud.ready, "monitor")}/`, PATIENCE_MS);
            const post = (name, path, body) => fetch(`http://${place(cloud.ready, name)}${path}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
            const sensor = { systemName: "sensor", address: "127.0.0.1", port: 9000 };
            await post("serviceregistry", "/serviceregistry/register-system", sensor);
            const publish = async (eventType, times) => {
                for (let number = 0; number < times; number += 1) {
                    const answer = await post("eventhandler", "/eventhandler/publish", { eventType, source: sensor, payload: String(number) });
                    expect(answer.ok, `${answer.status}`);
                }
            };
            await publish("heat", 7);
            await publish("alarm", 2);
            const { page, close } = await open();
            await show(page, "events");
            await settle(page);
            const panel = page.getByRole("region", { name: "Events for the fleet" });
            const lane = (name) => panel.getByRole("region", { name: "Table of lanes" }).getByRole("row", { name: new RegExp(`^${name}`) });
            const cells = (name) => lane(name).getByRole("cell").allInnerTexts();
            const reads = async (name, at, expected) => {
                for (const until = Date.now() + PATIENCE_MS; (await cells(name))[at]?.trim() !== expected; await page.waitForTimeout(100)) {
                    expect(Date.now() < until, `${name}: ${await cells(name)}`);
                }
            };
            await panel.getByText("takes events at").waitFor();
            await reads("events", 2, "7");
            await reads("alarms", 2, "2");
            await isUsable(page);
            await shoot(page, "fleet");
            await end(server, "SIGKILL");
            await panel.getByText("Nothing is forwarded: what is published waits in the event log").waitFor();
            await publish("heat", 3);
            await reads("events", 3, "3");
            await lane("events").getByText("unreachable").waitFor();
            await shoot(page, "fleet-away");
            server = serve();
            await reads("events", 2, "10");
            await reads("events", 3, "0");
            await panel.getByRole("img", { name: /^Ages of events of events when they were stored: \d+ in/ }).waitFor();
            // A server without its data makes the stream anew: what it had is gone.
            await end(server, "SIGKILL");
            await rm(join(scratch, "jetstream"), { recursive: true });
            server = serve();
            await publish("alarm", 1);
            await panel.locator("div.bad", { hasText: /Purged or deleted/ }).getByText("1 time").waitFor();
            await reads("alarms", 12, "2");
            await shoot(page, "fleet-purged");
            await show(page, "overview");
            await settle(page);
            await page.getByText("▲ The fleet's stream was found purged or deleted 1 time since the start").waitFor();
            await close();
        } finally {
            await cloud.stop();
            await end(server, "SIGKILL");
        }
    });

await browser.close();
for (const child of begun.reverse()) await end(child, "SIGKILL");
await rm(scratch, { recursive: true, force: true });
finish();
