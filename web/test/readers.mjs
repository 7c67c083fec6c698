// What readers of the dashboard have taken for something else, or looked for and not found. Prints `ok NAME` or `not ok NAME: WHY` a test.

import { createServer } from "node:http";
import { connect } from "node:net";
import { chromium } from "playwright-core";
import { severeFindings } from "./pages.mjs";
import { place, populate, start } from "./plant.mjs";
import { expect, finish, test } from "./report.mjs";
import { windows } from "./window.mjs";

const { BODKIN, BROWSER, SHOTS } = process.env;
const PATIENCE_MS = 10_000;

const cloud = await start(BODKIN, ["--insecure"]);
const plant = await populate(cloud);
const browser = await chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const base = `http://${place(cloud.ready, "monitor")}/`;
const { open, show, settle } = windows(browser, base, PATIENCE_MS);

await test("web_names_are_whole_and_stay_in_sight_where_there_is_little_room", async () => {
    const { page, close } = await open({ viewport: { width: 360, height: 740 } });
    await show(page, "events");
    await settle(page);
    const table = page.getByRole("region", { name: "Table of event types" });
    const name = table.getByRole("button", { name: "TEMPERATURE", exact: true });
    const { height } = await name.boundingBox();
    expect(height < 30, `TEMPERATURE stands on ${height} px`);
    await table.evaluate((region) => (region.scrollLeft = 200));
    const [{ x }, at] = [await name.boundingBox(), await table.boundingBox()];
    expect(x >= at.x && (await table.evaluate((region) => region.scrollLeft)) > 50, `the name is at ${x} px, its table at ${at.x} px`);
    await show(page, "broker");
    const histogram = page.getByRole("region", { name: "Ages of VIBRATION at dispatch" });
    await histogram.waitFor();
    expect(await histogram.evaluate((region) => region.scrollWidth <= region.clientWidth), "the histogram is wider than its place");
    await close();
});

await test("web_a_drawing_is_resized_and_a_thing_that_is_pressed_keeps_its_lines", async () => {
    const { page, close } = await open();
    await show(page, "map");
    await settle(page);
    const drawing = page.getByRole("region", { name: "Map of this cloud" });
    const width = async () => (await drawing.locator("svg").boundingBox()).width;
    const natural = await width();
    await drawing.focus();
    await page.keyboard.press("-");
    expect((await width()) < 0.8 * natural, `${await width()} px of ${natural}`);
    await page.getByRole("button", { name: "Draw Map of this cloud larger" }).click();
    expect((await width()) === natural, `${await width()} px of ${natural}`);
    const service = drawing.locator("g", { hasText: "temperature of sensor" });
    await service.click();
    await page.mouse.move(0, 0);
    // The rule of the historian, and the registration of the sensor.
    expect((await drawing.locator("path.chosen").count()) === 2 && (await drawing.locator("rect.end").count()) === 2, "the lines of what was pressed do not stay");
    await service.click();
    await page.mouse.move(0, 0);
    expect((await drawing.locator("path.chosen").count()) === 0, "pressed again, they stay");
    await close();
});

await test("web_charts_tell_the_newest_values_and_those_that_are_pointed_at", async () => {
    const { page, close } = await open();
    await show(page, "overview");
    const chart = page.locator("figure", { hasText: "Events events/s" });
    await chart.getByText(/^newest \d\d:\d\d:\d\d$/).waitFor();
    await chart.getByText(/published \d[\d.,]* events\/s/).waitFor();
    await chart.locator(".u-over").hover();
    await chart.getByText(/^at \d\d:\d\d:\d\d$/).waitFor();
    await close();
});

await test("web_links_of_zmtp_are_connections", async () => {
    const { page, close } = await open();
    await show(page, "overview");
    const told = page.locator("dl.facts div", { hasText: "Connections" });
    await told.getByText(/ZMTP 0$/).waitFor();
    const [host, port] = place(cloud.ready, "zmtp").split(":");
    const link = connect(Number(port), host);
    await told.getByText(/ZMTP 1$/).waitFor();
    link.destroy();
    await told.getByText(/ZMTP 0$/).waitFor();
    await close();
});

await test("web_the_cause_of_a_suspension_is_the_servers", async () => {
    const { page, close } = await open();
    const why = "events take longer from their publishers than publisher_broker of their topics states, by 300 us in the last minute";
    await page.route("**/api/v1/live**", (route) => route.fulfill({ status: 503, contentType: "application/problem+json", body: '{"title":"Too many streams"}' }));
    await page.route("**/api/v1/platform", async (route) => {
        const told = await (await route.fetch()).json();
        expect(Array.isArray(told.causes) && told.why !== undefined, `the platform tells no causes: ${JSON.stringify(told)}`);
        const late = { ...told, guarantee: "suspended", causes: ["publishers"], why, worstUs: 70_000, blockingUs: 0, publisherExcessUs: 300 };
        await route.fulfill({ contentType: "application/json", body: JSON.stringify(late) });
    });
    for (const name of ["overview", "broker"]) {
        await show(page, name);
        await page.getByText(why).first().waitFor();
        const stall = page.locator("dl.facts div", { hasText: "Longest stall" });
        expect((await stall.getAttribute("class")) !== "bad", `${name} blames a stall`);
    }
    expect((await page.locator("dl.facts div", { hasText: "Publishers later by" }).getAttribute("class")) === "bad", "the cause is not marked");
    await close();
});

await test("web_a_question_to_the_orchestrator_can_be_sent_as_a_link", async () => {
    const { page, close } = await open();
    await show(page, "orchestration?service=temperature");
    await settle(page);
    const ask = page.getByRole("region", { name: "Try it" });
    await ask.getByLabel("Consumer").selectOption({ label: "display at 127.0.0.1:9001" });
    await ask.getByLabel(/matchmaking:/).check();
    const link = page.url();
    const { page: other, close: closeOther } = await open();
    await other.goto(link);
    const theirs = other.getByRole("region", { name: "Try it" });
    await theirs.getByText("display would be given nothing.").waitFor();
    for (const flag of [/overrideStore:/, /matchmaking:/]) expect(await theirs.getByLabel(flag).isChecked(), `${flag} is not set`);
    await closeOther();
    for (const flag of [/overrideStore:/, /matchmaking:/]) await ask.getByLabel(flag).uncheck();
    await page.reload();
    await ask.locator(".outcome.done, .outcome.failed").waitFor();
    expect(!(await ask.getByLabel(/overrideStore:/).isChecked()), "a flag that was taken away is set again");
    await close();
});

await test("web_dead_letters_are_read_and_delivered_again", async () => {
    let takes = false;
    const archive = createServer((request, answer) => request.resume().on("end", () => answer.writeHead(takes ? 200 : 404).end()));
    await new Promise((resolve) => archive.listen(0, "127.0.0.1", resolve));
    const { page, close } = await open();
    const post = async (url, data) => {
        const answer = await page.request.post(url, { data });
        expect(answer.ok(), `${url}: ${answer.status()} ${await answer.text()}`);
        return answer;
    };
    const listed = async (path) => (await (await page.request.get(base + path)).json()).data;
    const system = { systemName: "archive", address: "127.0.0.1", port: archive.address().port };
    const eventHandler = `http://${place(cloud.ready, "eventhandler")}/eventhandler`;
    const { id: consumerId } = await (await post(`${base}serviceregistry/mgmt/systems`, system)).json();
    const service = (await listed("serviceregistry/mgmt")).find((one) => one.serviceDefinition.serviceDefinition === "temperature");
    await post(`${base}authorization/mgmt/intracloud`, {
        consumerId,
        providerIds: [service.provider.id],
        serviceDefinitionIds: [service.serviceDefinition.id],
        interfaceIds: [service.interfaces[0].id],
    });
    await post(`${eventHandler}/subscribe`, { eventType: "ALARM", subscriberSystem: system, notifyUri: "/hook", matchMetaData: false });
    await post(`${eventHandler}/publish`, { eventType: "ALARM", source: { systemName: "sensor", address: "127.0.0.1", port: 9000 }, payload: "the door is open" });
    await show(page, "events");
    const panel = page.getByRole("region", { name: "Dead letters", exact: true });
    const row = panel.getByRole("row", { name: /the door is open/ });
    await row.waitFor({ timeout: 3 * PATIENCE_MS });
    for (const told of ["archive", "the subscriber answered 404"]) expect((await row.textContent()).includes(told), await row.textContent());
    if (SHOTS) await panel.screenshot({ path: `${SHOTS}/dead-letters.png` });
    const deliver = async (told) => {
        await panel.getByRole("button", { name: "Deliver again what archive has refused of ALARM" }).click();
        await panel.getByRole("button", { name: /^Really deliver again/ }).click();
        await panel.getByText(told).waitFor();
    };
    await deliver(/archive has taken 0 events and refused 1 event .*; left here: 1 event\. Mend the subscriber/);
    takes = true;
    await deliver("archive has taken 1 event; nothing is left.");
    await panel.getByText("There are no dead letters.").waitFor();
    await page.request.delete(`${base}serviceregistry/mgmt/systems/${consumerId}`);
    archive.closeAllConnections();
    archive.close();
    await close();
});

await test("web_a_server_that_hangs_is_silent_within_seconds", async () => {
    const { page, close } = await open();
    await show(page, "overview");
    await settle(page);
    await page.getByText(/^● live, /).first().waitFor();
    const verdict = page.getByRole("region", { name: "This node" }).locator(".mark", { hasText: "by itself" });
    const colour = () => verdict.evaluate((mark) => getComputedStyle(mark).color);
    const before = await colour();
    cloud.child.kill("SIGSTOP");
    const stopped = Date.now();
    await page.getByRole("region", { name: "This node" }).getByText(/silent for \d/).waitFor();
    expect(Date.now() - stopped < 6000, `${Date.now() - stopped} ms until it was told`);
    expect((await colour()) !== before, "a verdict of before is drawn as one of now");
    const findings = await severeFindings(page);
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/silent.png` });
    cloud.child.kill("SIGCONT");
    expect(findings.length === 0, findings.join("; "));
    await page.locator(".state.silent").first().waitFor({ state: "detached" });
    await page.getByText(/^● live, /).first().waitFor();
    await close();
});

plant.stop();
await browser.close();
await cloud.stop();
finish();
