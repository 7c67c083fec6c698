// A graph over two edges, as a browser of the second one sees what comes from the first. Prints `ok NAME` or `not ok NAME: WHY` a test.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { severeFindings } from "./pages.mjs";
import { place, start } from "./plant.mjs";
import { expect, finish, test } from "./report.mjs";
import { windows } from "./window.mjs";

const { BODKIN, BROWSER, SHOTS } = process.env;
const PATIENCE_MS = 20_000;

/** Speeds are smoothed at the press; the office makes the mean of two of them. */
const GRAPH = `
[graph]
name = "line"

[[edge]]
name = "press"
way_ms = 2

[[edge]]
name = "office"
way_ms = 2

[[supplier]]
topic = "speed"
shape = "f64"
period_ms = 10

[[operator]]
name = "smooth"
kind = "moving_average"
inputs = ["speed"]
window = 1
cost_us = 20

[[operator]]
name = "mean"
kind = "moving_average"
inputs = ["smooth"]
edge = "office"
window = 2
cost_us = 20

[[link]]
from = "smooth"
topic = "over-smooth"
deadline_ms = 20
loss_tolerance = 0

[[output]]
topic = "line-mean"
from = "mean"
deadline_ms = 2000
`;
const TOPIC = `
[[topic]]
event_type = "over-smooth"
period_ms = 5
deadline_ms = 500
loss_tolerance = 0
retention = 1000
`;

const files = await mkdtemp(join(tmpdir(), "bodkin-edges-"));
const [graph, topics] = [join(files, "line.toml"), join(files, "bodkin.toml")];
await writeFile(graph, GRAPH);
await writeFile(topics, TOPIC);
const press = await start(BODKIN, ["--insecure", "--config", topics, "--graphs", graph, "--edge", "press"]);
const office = await start(BODKIN, ["--insecure", "--graphs", graph, "--edge", "office", "--edges", `press=${place(press.ready, "zmtp")}`]);

const post = async (path, body) => {
    const answer = await fetch(`http://${place(press.ready, path.startsWith("/eventhandler") ? "eventhandler" : "serviceregistry")}${path}`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
    });
    expect(answer.ok, `${path}: ${answer.status} ${await answer.text()}`);
};
const sensor = { systemName: "sensor", address: "127.0.0.1", port: 9000 };
await post("/serviceregistry/register-system", sensor);
let published = 0;
const timer = setInterval(() => {
    published += 1;
    void post("/eventhandler/publish", { eventType: "speed", source: sensor, payload: String(published) }).catch(() => undefined);
}, 50);

const browser = await chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const { open, show, settle } = windows(browser, `http://${place(office.ready, "monitor")}/`, PATIENCE_MS);

await test("web_what_comes_from_another_edge_is_drawn_and_counted", async () => {
    const { page, close } = await open();
    await show(page, "graphs");
    await settle(page);
    await page.getByRole("region", { name: "Table of graphs" }).getByRole("row", { name: /^line/ }).getByText("running").waitFor();
    await page.locator("svg.layers text", { hasText: "OVER-SMOOTH from press" }).waitFor();
    const row = page.getByRole("region", { name: "Table of inputs of line from other edges" }).getByRole("row", { name: /^OVER-SMOOTH/ });
    await row.getByText("connected").waitFor();
    const received = async () => Number((await row.getByRole("cell").allInnerTexts())[4].replaceAll(",", ""));
    const before = await received();
    await page.waitForFunction(
        (before) => [...document.querySelectorAll("td.number")].some(({ textContent }) => Number(textContent.replaceAll(",", "")) >= before + 20),
        before,
    );
    expect((await received()) > before, `what was received stays at ${before}`);
    for (const width of [1280, 360]) {
        await page.setViewportSize({ width, height: 800 });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        expect(wide <= 0, `the page is ${wide} px wider than a window of ${width}`);
        const findings = await severeFindings(page);
        expect(findings.length === 0, findings.join("; "));
    }
    await close();
});

await test("web_an_edge_that_dies_makes_its_graph_late", async () => {
    const { page, close } = await open();
    await show(page, "graphs");
    await settle(page);
    clearInterval(timer);
    await press.stop();
    await page.getByRole("region", { name: "Table of graphs" }).getByRole("row", { name: /^line/ }).getByText("inputs late").waitFor();
    await page.getByText(/Its results are late: no OVER-SMOOTH comes from press: \S/).waitFor();
    await page.locator("svg.layers text", { hasText: "▲ no OVER-SMOOTH from press" }).waitFor();
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/edge-down.png`, fullPage: true });
    await show(page, "overview");
    await page.getByText(/links? of graphs to other edges (is|are) down/).waitFor();
    await close();
});

await browser.close();
await office.stop();
await rm(files, { recursive: true, force: true });
finish();
