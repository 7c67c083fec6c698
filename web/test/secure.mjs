// The dashboard in secure mode: what each certificate sees. Prints `ok NAME` or `not ok NAME: WHY` a test.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { allAnswer, linksOf, PAGES, severeFindings } from "./pages.mjs";
import { place, start } from "./plant.mjs";
import { expect, finish, test } from "./report.mjs";

const { BODKIN, BROWSER, SHOTS } = process.env;
const PATIENCE_MS = 10_000;

const cloud = await start(BODKIN, []);
const trust = cloud.ready.trust;
const certificates = join(cloud.data, "issued");
for (const system of ["display", "sensor"]) execFileSync(BODKIN, ["cert", "issue", "--trust", trust, "--system", system, "--out", join(certificates, system)]);
const files = {
    sysop: { certPath: join(trust, "systems", "sysop.crt"), keyPath: join(trust, "systems", "sysop.key") },
    display: { certPath: join(certificates, "display", "display.crt"), keyPath: join(certificates, "display", "display.key") },
    sensor: { certPath: join(certificates, "sensor", "sensor.crt"), keyPath: join(certificates, "sensor", "sensor.key") },
};
const [monitor, eventHandler] = ["monitor", "eventhandler"].map((name) => `https://${place(cloud.ready, name)}`);
const browser = await chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });

/** Where a command finds a cloud. */
const reached = ({ ready }) => ["--service-registry", place(ready, "serviceregistry"), "--monitor", place(ready, "monitor")];

/** A browser that shows a certificate at each port; none where there is none. */
const as = async (atMonitor, atEventHandler) => {
    const shown = [
        [monitor, atMonitor],
        [eventHandler, atEventHandler],
    ].filter(([, whose]) => whose);
    const clientCertificates = shown.map(([origin, whose]) => ({ origin, ...files[whose] }));
    const context = await browser.newContext({ ignoreHTTPSErrors: true, clientCertificates, viewport: { width: 1280, height: 900 } });
    context.setDefaultTimeout(PATIENCE_MS);
    return context;
};
const post = async (context, url, data) => {
    const answer = await context.request.post(url, { data });
    expect(answer.ok(), `${url}: ${answer.status()} ${await answer.text()}`);
};

const operator = await as("sysop", "display");
for (const [systemName, port] of [
    ["sensor", 9000],
    ["display", 9001],
]) {
    await post(operator, `${monitor}/serviceregistry/mgmt/systems`, { systemName, address: "127.0.0.1", port });
}

await test("web_without_a_certificate_nothing_is_shown", async () => {
    const nobody = await as(null, null);
    const answer = await nobody.request.get(`${monitor}/`);
    expect(answer.status() === 401 && (await answer.text()).includes("Show the certificate of a system of this cloud."), `${answer.status()}`);
    for (const path of ["/healthz", "/readyz"]) expect((await nobody.request.get(`${monitor}${path}`)).status() === 200, `${path} needs no certificate`);
    for (const path of ["/dashboard.js", "/dashboard.css", "/icon.svg", "/licences.txt", "/metrics", "/openapi.json", "/asyncapi.json", "/swagger-ui.html", "/api/v1/overview", "/api/v1/live?of=/api/v1/overview", "/serviceregistry/mgmt", "/nothing"]) {
        const status = (await nobody.request.get(`${monitor}${path}`)).status();
        expect(status === 401, `${path} is answered ${status}`);
    }
    await nobody.close();
});

await test("web_browser_without_certificate_signs_in_by_link", async () => {
    const nobody = await as(null, null);
    const page = await nobody.newPage();
    await page.goto(`${monitor}/`);
    await page.getByRole("heading", { name: "Sign in to this local cloud" }).waitFor();
    await page.getByText("local.bodkin.arrowhead.eu").waitFor();
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/sign-in.png`, fullPage: true });
    const findings = await severeFindings(page);
    expect(findings.length === 0, findings.join("; "));
    const link = (...options) => execFileSync(BODKIN, ["dashboard", ...options, "--trust", trust, ...reached(cloud)], { encoding: "utf8" }).split("\n")[0];
    const used = link();
    await page.goto(used);
    await page.getByText("secure ·").waitFor();
    expect(page.url().startsWith(`${monitor}/`) && !page.url().includes("token"), `the address keeps the token: ${page.url()}`);
    expect((await page.locator(".state.lost").count()) === 0, `${await page.locator(".why").allTextContents()}`);
    // A change, which the page sends with its own origin.
    const made = await page.evaluate(() => fetch("/serviceregistry/mgmt/services", { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"serviceDefinition":"by-link"}' }).then((answer) => answer.status));
    expect(made === 201, `a change is answered ${made}`);
    const [cookie] = await nobody.cookies();
    expect(cookie.httpOnly && cookie.secure && cookie.sameSite === "Strict" && cookie.name.startsWith("__Host-"), JSON.stringify(cookie));
    const again = await as(null, null);
    expect((await (await again.newPage()).goto(used)).status() === 401, "a link signs in twice");
    const short = link("--valid-s", "1");
    await new Promise((resolve) => setTimeout(resolve, 1100));
    expect((await (await again.newPage()).goto(short)).status() === 401, "a link outlives its time");
    await again.close();
    await nobody.close();
});

await test("web_the_operator_sees_and_manages", async () => {
    const page = await operator.newPage();
    for (const name of ["overview", "systems", "audit"]) {
        await page.goto(`${monitor}/#/${name}`);
        await page.waitForFunction(() => document.querySelector(".state.live") !== null && document.querySelector(".state.waiting") === null);
        expect((await page.locator(".state.lost").count()) === 0, `${name}: ${await page.locator(".why").allTextContents()}`);
    }
    await page.goto(`${monitor}/#/overview`);
    await page.getByText("secure ·").waitFor();
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/secure.png` });
    await page.close();
});

await test("web_the_api_page_leads_to_the_documents_of_every_core_system", async () => {
    const page = await operator.newPage();
    await page.goto(`${monitor}/#/api`);
    await page.getByText("Gatekeeper: operations to try").waitFor();
    const places = await linksOf(page);
    expect(places.length === 19, `${places}`);
    await page.close();
    const origins = new Set(places.map((place) => new URL(place).origin));
    expect(origins.size === 7, `${[...origins]}`);
    const anywhere = await browser.newContext({ ignoreHTTPSErrors: true, clientCertificates: [...origins].map((origin) => ({ origin, ...files.sysop })) });
    await allAnswer(anywhere.request, places);
    await anywhere.close();
});

await test("web_a_certificate_is_revoked_by_the_operator", async () => {
    execFileSync(BODKIN, ["cert", "issue", "--trust", trust, "--system", "stolen", "--out", join(certificates, "stolen")]);
    files.stolen = { certPath: join(certificates, "stolen", "stolen.crt"), keyPath: join(certificates, "stolen", "stolen.key") };
    const thief = await as("stolen", null);
    expect((await thief.request.get(`${monitor}/metrics`)).status() === 200, "it counts until it is revoked");
    const page = await operator.newPage();
    await page.goto(`${monitor}/#/systems?certificates.find=stolen`);
    const row = page.getByRole("region", { name: "Table of certificates" }).getByRole("row", { name: /^stolen\./ });
    await row.getByText("valid").waitFor();
    await row.getByRole("button", { name: /^Revoke/ }).click();
    await row.getByRole("button", { name: /^Really revoke/ }).click();
    await row.getByText("revoked").waitFor();
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/certificates.png` });
    await page.close();
    await thief.close();
    for (const until = Date.now() + PATIENCE_MS; ; ) {
        const late = await as("stolen", null);
        const comesIn = await late.request.get(`${monitor}/metrics`).then((answer) => answer.ok(), () => false);
        await late.close();
        if (!comesIn) break;
        expect(Date.now() < until, "a revoked certificate still comes in");
    }
});

await test("web_a_system_is_refused_with_the_reason", async () => {
    const system = await as("display", "display");
    const page = await system.newPage();
    await page.goto(`${monitor}/#/services`);
    await page.getByText(/refused for/).first().waitFor();
    const line = page.getByRole("region", { name: "What this certificate may do" });
    const why = await line.locator(".why").textContent();
    expect(why.includes("display.") && why.includes("this is for sysop only"), why);
    expect((await page.locator(".panel").count()) === 1, "a page of refusals is drawn beside the line that tells them all");
    const findings = await severeFindings(page);
    expect(findings.length === 0, findings.join("; "));
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/refused.png` });
    await system.close();
});

await test("web_who_is_refused_is_not_asked_for_all_the_time", async () => {
    const system = await as("display", "display");
    const page = await system.newPage();
    const asked = [];
    page.on("request", (request) => new URL(request.url()).pathname.startsWith("/api/") && asked.push(new URL(request.url()).pathname));
    await page.goto(`${monitor}/#/broker`);
    const again = page.getByRole("button", { name: "Ask again now" });
    await again.waitFor();
    // What the page asked before it knew.
    await page.getByText(/It is asked again in [2-9] s/).waitFor();
    const [before, began] = [asked.length, Date.now()];
    await page.waitForFunction(() => /It is asked again in (9|1\d) s/.test(document.body.textContent));
    const seconds = (Date.now() - began) / 1000;
    expect(asked.length - before <= 3, `${asked.length - before} questions in ${seconds} s: ${asked.slice(before)}`);
    const waited = asked.length;
    await again.click();
    await page.waitForRequest("**/api/v1/overview", { timeout: 1 }).catch(() => undefined);
    await page.waitForTimeout(500);
    expect(asked.length > waited, "the button asks nothing");
    await system.close();
});

await test("web_a_refused_publication_says_what_to_do", async () => {
    const blind = await as("sysop", "sysop");
    const page = await blind.newPage();
    await page.goto(`${monitor}/#/events?type=TEMPERATURE`);
    const publish = page.getByRole("region", { name: "Publish" });
    await publish.getByText("The operator's publishes nothing. An operator neither sees nor publishes events on this page without a system's certificate.").waitFor();
    await publish.getByLabel("As").selectOption({ label: "sensor at 127.0.0.1:9000" });
    await publish.getByLabel("Payload").fill("21.5");
    await publish.getByRole("button", { name: "Publish" }).click();
    const told = await publish.locator(".outcome.failed").textContent();
    expect(told.includes("Have the browser show the certificate of sensor at https://"), told);
    if (SHOTS) await publish.screenshot({ path: `${SHOTS}/publish-refused.png` });
    await blind.close();
});

await test("web_events_are_heard_by_a_systems_certificate_only", async () => {
    const sensor = await as(null, "sensor");
    const publish = () =>
        post(sensor, `${eventHandler}/eventhandler/publish`, {
            eventType: "TEMPERATURE",
            source: { systemName: "sensor", address: "127.0.0.1", port: 9000 },
            payload: "21.5",
        });
    const page = await operator.newPage();
    await page.goto(`${monitor}/#/events?type=TEMPERATURE`);
    await page.getByRole("button", { name: "Listen" }).click();
    await page.getByText("Nothing has come yet.").waitFor();
    await publish();
    expect((await page.getByText("21.5").count()) === 0, "no rule lets display hear sensor");
    await page.close();

    const blind = await as("sysop", "sysop");
    const refused = await blind.newPage();
    await refused.goto(`${monitor}/#/events?type=TEMPERATURE`);
    await refused.getByRole("button", { name: "Listen" }).click();
    const tail = refused.getByRole("region", { name: "Live tail" });
    await tail.locator("p.why").waitFor();
    await tail.getByText("A certificate of a system, as a key store to import").waitFor();
    expect((await tail.getByRole("link", { name: /eventhandler\/echo/ }).getAttribute("href")) === `${eventHandler}/eventhandler/echo`, "the link leads elsewhere");
    if (SHOTS) await tail.screenshot({ path: `${SHOTS}/tail-refused.png` });
    await blind.close();
    await sensor.close();
});

await test("web_a_secure_clouds_pages_have_no_severe_finding", async () => {
    const page = await operator.newPage();
    for (const [width, colorScheme] of [
        [1280, "light"],
        [360, "dark"],
    ]) {
        await page.setViewportSize({ width, height: 900 });
        await page.emulateMedia({ colorScheme });
        for (const name of PAGES) {
            await page.goto(`${monitor}/#/${name}`);
            await page.getByRole("heading", { level: 1 }).waitFor();
            await page.waitForFunction(() => document.querySelector(".state.waiting") === null);
            const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
            expect(wide <= 0, `${name} is ${wide} px wider than a window of ${width}`);
            const severe = await severeFindings(page);
            expect(severe.length === 0, `${name}, ${width} px, ${colorScheme}: ${severe.join("; ")}`);
        }
    }
    await page.close();
});

await test("web_events_of_another_cloud_are_accepted_and_refused", async () => {
    const other = await start(BODKIN, ["--cloud", "office", "--operator", "harbour"]);
    try {
        const introduction = join(cloud.data, "office.toml");
        // The other cloud is met at a relay that is not there: to accept an event type, nobody has to be met.
        execFileSync(BODKIN, ["relay", "add", "127.0.0.1:5573", "--own", "--data", other.data, ...reached(other)]);
        const introduced = execFileSync(BODKIN, ["cloud", "introduce", "--out", introduction, "--output", "json", "--data", other.data, ...reached(other)]);
        const { fingerprint } = JSON.parse(introduced);
        execFileSync(BODKIN, ["cloud", "add", introduction, "--fingerprint", fingerprint, "--data", cloud.data, ...reached(cloud)]);
    } finally {
        await other.stop();
    }
    const page = await operator.newPage();
    await page.goto(`${monitor}/#/clouds`);
    const panel = page.getByRole("region", { name: "Events of other clouds" });
    await panel.getByRole("combobox", { name: "Cloud" }).selectOption("office.harbour");
    await panel.getByRole("textbox", { name: "Event type" }).fill("tide");
    await panel.getByRole("button", { name: "Accept", exact: true }).click();
    const row = panel.getByRole("row").filter({ hasText: "TIDE" });
    await row.getByText("accepted").waitFor();
    await row.getByRole("button", { name: /^Refuse TIDE/ }).click();
    await row.getByRole("button", { name: /^Really refuse/ }).click();
    await panel.getByText("Events of type TIDE from office.harbour are refused from now on.").waitFor();
    await page.goto(`${monitor}/#/map`);
    await page.locator("svg.layers text", { hasText: "cloud harbour/office" }).first().waitFor();
    await page.close();
});

await test("web_who_has_asked_for_a_certificate_is_told", async () => {
    const nobody = await as(null, null);
    await nobody.request.post(`${monitor}/api/v1/onboarding`, { data: { systemName: "stranger", secret: "x".repeat(40), csr: "none" } });
    await nobody.close();
    const page = await operator.newPage();
    await page.goto(`${monitor}/#/systems`);
    const panel = page.getByRole("region", { name: "Onboarding: who has asked" });
    await panel.getByText("refused").first().waitFor();
    await page.close();
});

await browser.close();
await cloud.stop();
finish();
