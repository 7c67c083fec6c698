// The dashboard of a cloud that runs already, with the key store of its operator, as whoever has installed it opens it. ORIGIN: the monitor's address; KEY_STORE and
// PASSWORD_FILE: the operator's; BROWSER. Prints `ok NAME` or `not ok NAME: WHY` a test.

import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";
import { expect, finish, test } from "./report.mjs";

const { BROWSER, KEY_STORE, ORIGIN, PASSWORD_FILE } = process.env;
const PATIENCE_MS = 30_000;

const browser = await chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const passphrase = readFileSync(PASSWORD_FILE, "utf8").split("\n")[0];
const context = await browser.newContext({
    ignoreHTTPSErrors: true,
    clientCertificates: [{ origin: ORIGIN, pfxPath: KEY_STORE, passphrase }],
    viewport: { width: 1280, height: 900 },
});
context.setDefaultTimeout(PATIENCE_MS);
const page = await context.newPage();
const said = [];
page.on("pageerror", (error) => said.push(String(error)));
const settle = () => page.waitForFunction(() => document.querySelector(".state.live") !== null && document.querySelector(".state.waiting") === null);

await test("packaging_browser_opens_every_page", async () => {
    await page.goto(`${ORIGIN}/`);
    await page.getByText("secure ·").waitFor();
    const hashes = await page.locator("nav[aria-label='Pages'] a").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
    expect(hashes.length >= 14, `the pages are ${hashes}`);
    for (const hash of hashes) {
        await page.goto(`${ORIGIN}/${hash}`);
        await page.getByRole("heading", { level: 1 }).waitFor();
        await settle();
        expect((await page.locator(".state.lost").count()) === 0, `${hash}: ${await page.locator(".why").allTextContents()}`);
    }
    expect(said.length === 0, said.join("; "));
});

await test("packaging_browser_shows_what_was_registered", async () => {
    await page.goto(`${ORIGIN}/#/services`);
    await page.getByText("temperature").first().waitFor();
    await page.goto(`${ORIGIN}/#/systems`);
    await page.getByText("display").first().waitFor();
});

await browser.close();
finish();
