// A fail-over as a browser sees it: the page of the node that follows, and the dashboard on either side of the change. Prints `ok NAME` or `not ok NAME: WHY` a test.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { firstLine, place, run } from "./plant.mjs";
import { expect, finish, test } from "./report.mjs";

const { BODKIN, BROWSER, SHOTS } = process.env;
/** A fail-over, and what a page waits between two attempts. */
const PATIENCE_MS = 20_000;
const READY_MS_MAX = 60_000;

const data = await mkdtemp(join(tmpdir(), "bodkin-pair-"));
const begun = [];
const begin = async (...words) => {
    const node = run(BODKIN, [...words, "--insecure", "--data", join(data, words[0] + begun.length), "--output", "json"]);
    begun.push(node);
    return Object.assign(node, { first: await firstLine(node) });
};
const witness = await begin("witness", "--witness-listen", "127.0.0.1:0");
const backup = await begin("backup", "--any-port", "--pair-listen", "127.0.0.1:0", "--witness", witness.first.pair);
const primary = await begin("up", "--any-port", "--role", "primary", "--peer", backup.first.pair, "--witness", witness.first.pair);
const dashboard = (node) => `http://${place(node.first, "monitor")}/`;

const browser = await chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const open = async () => {
    const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    return page;
};

const leader = await open();
const follower = await open();

await test("web_a_follower_says_who_leads", async () => {
    await leader.goto(`${dashboard(primary)}#/overview`);
    await leader.getByText("its Backup has everything").waitFor();
    await follower.goto(dashboard(backup));
    await follower.getByRole("heading", { name: "Another node of the pair leads" }).waitFor();
    await follower.getByRole("link", { name: dashboard(primary) }).waitFor();
    if (SHOTS) await follower.screenshot({ path: `${SHOTS}/follower.png` });
});

await test("web_a_fail_over_is_watched", async () => {
    const killed = Date.now();
    primary.child.kill("SIGKILL");
    await leader.locator(".state.lost").first().waitFor();
    await leader.getByText(/What is shown is .* old\./).first().waitFor();
    // The page of the node that followed looks again by itself, and is the dashboard then.
    await follower.getByText("and its Backup is out").waitFor();
    console.log(`note the Backup's dashboard was there ${Date.now() - killed} ms after the kill; its page looks again every 5 s`);
    if (SHOTS) await follower.screenshot({ path: `${SHOTS}/failed-over.png` });
});

await test("web_a_leaders_page_stays_and_who_comes_back_follows", async () => {
    // The Backup that leads goes on telling its page over one stream, through the time in which the other node comes back.
    await follower.getByText(/^● live, /).first().waitFor();
    const back = await begin("up", "--any-port", "--role", "primary", "--peer", backup.first.pair, "--witness", witness.first.pair);
    const page = await open();
    await page.goto(dashboard(back));
    await page.getByRole("link", { name: dashboard(backup) }).waitFor();
    await follower.getByText(/^● live, /).first().waitFor();
    expect((await follower.locator(".state.lost").count()) === 0, "the leader's page lost its node");
});

await test("web_the_lead_is_handed_over_by_two_clicks", async () => {
    await follower.goto(`${dashboard(backup)}#/broker`);
    await follower.getByText("has everything that was answered").waitFor();
    await follower.getByRole("button", { name: "Hand over the lead to the other node" }).click();
    await follower.getByRole("button", { name: "Really hand over the lead to the other node" }).click();
    await follower.getByText(/The first node leads in epoch \d+: .* nobody led for \d+ ms/).waitFor();
    // The page of the node that led does not go on as if it did.
    const line = follower.getByRole("region", { name: "Whether this node leads" });
    await line.getByRole("link", { name: "Which node leads?" }).waitFor();
    expect((await follower.getByRole("button", { name: /hand over/i }).count()) === 0, "what was handed over can be handed over again");
    expect((await follower.locator(".panel .state.live").count()) === 0, "a panel is live at a node that does not lead");
    await line.getByText(/This node has handed the lead over: the first node leads in epoch \d+\./).waitFor();
    const verdict = await follower.locator(".stale .mark").first().evaluate((mark) => getComputedStyle(mark, "::before").content);
    expect(verdict.includes("was"), `a verdict of before reads as one of now: ${verdict}`);
    // Its node begins anew, as one that follows, on the ports that it had.
    await line.getByRole("link", { name: "Which node leads?" }).click();
    await follower.getByRole("heading", { name: "Another node of the pair leads" }).waitFor();
    await follower.getByRole("link", { name: dashboard(begun.at(-1)) }).click();
    await follower.getByText("This node leads").first().waitFor();
});

await test("web_a_witness_that_is_away_is_told", async () => {
    const page = await open();
    const nodes = page.locator("dl.facts").filter({ hasText: "Witness" });
    // Whichever leads behind the hand-over.
    for (let attempt = 0; attempt < 20 && (await nodes.count()) === 0; attempt += 1) {
        await page.goto(`${dashboard(attempt % 2 === 0 ? begun.at(-1) : backup)}#/overview`);
        await page.reload();
        await nodes.waitFor({ timeout: 2000 }).catch(() => undefined);
    }
    await nodes.getByText("it decides who may lead").waitFor();
    witness.child.kill("SIGKILL");
    await nodes.getByText("the Backup cannot take over").waitFor();
    await page.getByText("A node of the reliable pair is unreachable").waitFor();
});

/** The demo's pair, and where the dashboards of its Primary and Backup are. */
const demo = async () => {
    const child = spawn(BODKIN, ["demo", "--fail-over"], { stdio: ["ignore", "pipe", "ignore"] });
    begun.push({ child, ended: new Promise((resolve) => child.once("exit", resolve)) });
    let text = "";
    await new Promise((resolve, reject) => {
        setTimeout(() => reject(new Error(`the demo's pair was not ready: ${text}`)), READY_MS_MAX).unref();
        child.stdout.on("data", (chunk) => (text += chunk).includes("Ctrl-C ends the demo") && resolve());
    });
    return { pages: [...text.matchAll(/http:\/\/\S+\/#\/broker/g)].map(([url]) => url), told: () => text };
};

await test("web_the_demos_pair_has_a_button_that_hands_over", async () => {
    const { pages, told } = await demo();
    const page = await open();
    await page.goto(pages[0]);
    await page.getByText("has everything that was answered").waitFor();
    await page.getByRole("button", { name: "Hand over the lead to the other node" }).click();
    await page.getByRole("button", { name: "Really hand over the lead to the other node" }).click();
    await page.getByText(/The second node leads in epoch \d+: .* nobody led for \d+ ms/).waitFor();
    await page.goto(pages[1]);
    await page.getByText("This node leads").first().waitFor();
    expect(!/[1-9]\d* lost/.test(told()), `events were lost: ${told()}`);
});

await browser.close();
for (const { child } of begun) child.kill("SIGKILL");
await Promise.all(begun.map(({ ended }) => ended));
await rm(data, { recursive: true, force: true });
finish();
