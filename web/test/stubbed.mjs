// What a small cloud by itself does not have, drawn from answers that a larger one would give. Prints `ok NAME` or `not ok NAME: WHY` a test.

import { chromium } from "playwright-core";
import { PAGES, severeFindings } from "./pages.mjs";
import { place, populate, start } from "./plant.mjs";
import { expect, finish, test } from "./report.mjs";
import { windows } from "./window.mjs";

const { BODKIN, BROWSER, SHOTS } = process.env;
const PATIENCE_MS = 10_000;
/** More events than a tail shows at once. */
const BURST_EVENTS = 2_000;

const cloud = await start(BODKIN, ["--insecure"]);
const plant = await populate(cloud);
const browser = await chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const base = `http://${place(cloud.ready, "monitor")}/`;
const { open, show, settle, answerWith } = windows(browser, base, PATIENCE_MS);

/** The overview as the cloud tells it, with these numbers besides. */
const withNumbers = (more) => (overview) => ({ ...overview, numbers: { ...overview.numbers, ...more } });
/** Sooner or later nothing of these words is missing in what an element tells. */
const tells = async (element, words) => {
    for (const until = Date.now() + PATIENCE_MS; ; await new Promise((later) => setTimeout(later, 50))) {
        const told = (await element.innerText()).replaceAll(/\s+/g, " ");
        const missing = words.filter((word) => !told.includes(word));
        if (missing.length === 0) return;
        expect(Date.now() < until, `“${missing[0]}” is not in: ${told}`);
    }
};
/** A page is as wide as its window, and axe finds nothing severe in it. */
const isUsable = async (page, width) => {
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(wide <= width, `the page is ${wide} px wide`);
    const findings = await severeFindings(page);
    expect(findings.length === 0, findings.join("; "));
};

const LANE = { name: "press", subject: "fleet.press", epoch: 3, position: 1210, stored: 1200, batches: 40, repeated: 1, waiting: 0, lagUs: 0, lost: 0, lostByStream: 0, emptiedThrough: null, emptiedMs: null, emptied: 0, stopped: false, trouble: null, age: { p50Us: 10_240, p99Us: 12_288, worstUs: 49_152, bucketsUs: [[9_728, 400], [10_240, 700], [12_288, 99], [49_152, 1]] } };
const FLEET = {
    edge: "hall-3", stream: "PLANTS", forwards: true, connected: true, server: "nats.example:4222", connections: 1, pacedPerS: 60_000, trouble: null,
    told: { replicas: 3, onDisk: true, messages: 98_765, bytes: 4_500_000 },
    lanes: [
        LANE,
        { ...LANE, name: "oven", subject: "fleet.oven", waiting: 77, lagUs: 2_500_000, lost: 5, lostByStream: 2, stopped: true, trouble: "another edge has this one's name", age: null },
        { ...LANE, name: "saw", subject: "fleet.saw", emptiedThrough: 900, emptiedMs: Date.now() - 180_000, emptied: 1 },
    ],
};

await test("web_the_fleets_lanes_are_drawn", async () => {
    const { page, close } = await open();
    const told = { "/api/v1/overview": withNumbers({ bodkin_fleet_connected: 1 }), "/api/v1/fleet": FLEET };
    await answerWith(page, told);
    await show(page, "events");
    await settle(page);
    const panel = page.getByRole("region", { name: "Events for the fleet" });
    await tells(panel, ["● connected", "nats.example:4222", "hall-3", "PLANTS", "98,765 messages", "3 servers", "on disk", "1 connection since the start", "60,000/s at the most", "Purged or deleted ▲ 1 time"]);
    const row = (name) => panel.getByRole("region", { name: "Table of lanes" }).getByRole("row", { name });
    await tells(row(/^press/), ["● running", "1,200"]);
    await tells(row(/^press/), ["10.2 ms", "12.3 ms", "49.2 ms"]);
    await tells(row(/^oven/), ["▲ stopped", "77", "2.5 s", "5", "2", "another edge has this one's name"]);
    await tells(row(/^saw/), ["900", "3 min ago"]);
    // Of the first lane that has any; two buckets to a doubling, and no lane's that has none.
    const ages = panel.getByRole("img", { name: "Ages of events of press when they were stored: 1,200 in 3 buckets" });
    for (const bar of ["≤ 11.6 ms", "1,100", "≤ 16.4 ms", "99", "≤ 65.5 ms"]) await ages.getByText(bar, { exact: true }).waitFor();
    await panel.getByRole("combobox").selectOption("oven");
    await panel.getByText("Nothing of oven was stored since the start.").waitFor();
    await panel.getByRole("combobox").selectOption("press");
    await isUsable(page, 1280);
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/fleet.png`, fullPage: true });
    await close();
});

await test("web_a_fleet_that_is_away_says_why", async () => {
    const { page, close } = await open({ viewport: { width: 360, height: 740 } });
    const unread = { ...LANE, waiting: 5, lagUs: 0, age: null };
    const away = { ...FLEET, connected: false, server: null, told: null, trouble: "nats.example:4222: connection refused", lanes: [unread] };
    await answerWith(page, { "/api/v1/overview": withNumbers({ bodkin_fleet_connected: 0 }), "/api/v1/fleet": away });
    await show(page, "events");
    await settle(page);
    const panel = page.getByRole("region", { name: "Events for the fleet" });
    await tells(panel, ["▲ unreachable", "nats.example:4222: connection refused", "waits in the event log", "Server none", "not known yet"]);
    await isUsable(page, 360);
    await close();
});

await test("web_what_waits_for_a_fleet_goes_as_fast_as_it_can_where_nothing_is_live", async () => {
    const { page, close } = await open({ viewport: { width: 360, height: 740 }, colorScheme: "dark" });
    await answerWith(page, { "/api/v1/overview": withNumbers({ bodkin_fleet_connected: 1 }), "/api/v1/fleet": { ...FLEET, pacedPerS: null } });
    await show(page, "events");
    await settle(page);
    await tells(page.getByRole("region", { name: "Events for the fleet" }), ["What waits is sent as fast as it goes"]);
    await isUsable(page, 360);
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/fleet-dark-360.png`, fullPage: true });
    await close();
});

await test("web_what_comes_from_the_fleet_is_drawn_without_anything_that_goes_there", async () => {
    const { page, close } = await open();
    const fromFleet = {
        stream: "COMMANDS", consumer: "hall-3", connected: true, server: "nats.example:4222", connections: 2, trouble: null, position: 1300, taken: 1234, repeated: 2, passedOver: 7,
        refused: 3, lastRefused: "message 1299: it is no CloudEvent", lost: 11, underWay: 5, oldestMs: Date.now() - 4_000, waiting: 77, heardMs: Date.now() - 3_000,
    };
    const numbers = withNumbers({ bodkin_from_fleet_connected: 1 });
    await answerWith(page, { "/api/v1/overview": numbers, "/api/v1/fleet": { ...FLEET, forwards: false, connected: false, lanes: [LANE], fromFleet } });
    await show(page, "events");
    await settle(page);
    const panel = page.getByRole("region", { name: "Events from the fleet" });
    await tells(panel, ["● connected", "COMMANDS", "consumer hall-3", "1,234", "77", "s ago", "message 1299: it is no CloudEvent", "▲ 3", "▲ 11"]);
    expect((await page.getByRole("region", { name: "Events for the fleet" }).count()) === 0, "nothing is forwarded");
    await isUsable(page, 1280);
    await close();
});

await test("web_a_cloud_without_a_fleet_says_nothing_of_one", async () => {
    const { page, said, close } = await open();
    await show(page, "events");
    await settle(page);
    expect((await page.getByRole("region", { name: "Events for the fleet" }).count()) === 0, "there is a panel");
    expect(said.length === 0, said.join("; "));
    await close();
});

await test("web_topics_say_whether_the_fleet_gets_them", async () => {
    const { page, close } = await open();
    await answerWith(page, { "/api/v1/topics": (told) => ({ ...told, data: told.data.map((topic) => ({ ...topic, fleet: topic.eventType === "VIBRATION" })) }) });
    for (const [name, table] of [["events", "Table of event types"], ["broker", "Table of real-time topics"]]) {
        await show(page, name);
        await settle(page);
        const rows = page.getByRole("region", { name: table }).getByRole("row");
        const heads = await rows.first().locator("th").allInnerTexts();
        const cells = await rows.filter({ hasText: "VIBRATION" }).first().getByRole("cell").allInnerTexts();
        const at = heads.findIndex((head) => head.trim() === "For the fleet");
        expect(at >= 0 && cells[at].trim() === "yes", `${name}: ${heads} ${cells}`);
    }
    await close();
});

const LINK = { edge: "hall-2", topic: "LEFT", down: null, lossTolerance: 3, received: 4100, lost: 2, exceeded: 0, refused: 0 };
/** The graph of the plant, as if these came from other edges. */
const withLinks = (links) => (told) => ({ ...told, data: told.data.map((graph) => ({ ...graph, links })) });

await test("web_a_graph_whose_input_is_down_is_not_drawn_as_running", async () => {
    const { page, close } = await open();
    const down = { ...LINK, edge: "hall-9", topic: "RIGHT", down: "hall-9:8443: connection refused", lossTolerance: null, exceeded: 4, refused: 6 };
    await answerWith(page, { "/api/v1/graphs": withLinks([LINK, down]) });
    await show(page, "graphs");
    await settle(page);
    const panel = page.getByRole("region", { name: "Event-processing graphs" });
    await tells(panel.getByRole("region", { name: "Table of graphs" }).getByRole("row", { name: /^press/ }), ["▲ inputs late"]);
    await tells(panel, ["no RIGHT comes from hall-9: hall-9:8443: connection refused", "More of RIGHT from hall-9 was missing in a row than it tolerates, 4 times"]);
    const drawn = await panel.locator("svg.layers text").allTextContents();
    for (const name of ["LEFT from hall-2", "▲ no RIGHT from hall-9"]) expect(drawn.some((text) => text.startsWith(name)), `${name} is not drawn: ${drawn}`);
    const row = (name) => panel.getByRole("region", { name: "Table of inputs of press from other edges" }).getByRole("row", { name });
    await tells(row(/^LEFT/), ["hall-2", "● connected", "4,100", "3"]);
    await tells(row(/^RIGHT/), ["hall-9", "▲ unreachable", "connection refused", "any", "4", "6"]);
    await isUsable(page, 1280);
    await page.setViewportSize({ width: 360, height: 740 });
    await isUsable(page, 360);
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/links.png`, fullPage: true });
    await close();
});

await test("web_a_graph_whose_inputs_come_runs", async () => {
    const { page, close } = await open();
    await answerWith(page, { "/api/v1/graphs": withLinks([LINK]) });
    await show(page, "graphs");
    await settle(page);
    await tells(page.getByRole("region", { name: "Table of graphs" }).getByRole("row", { name: /^press/ }), ["● running"]);
    expect((await page.locator(".why").count()) === 0, await page.locator(".why").allTextContents());
    await close();
});

const NODE = { node: "a1", isThis: true, state: "serves", host: "10.0.0.1", monitorPort: 8440, secure: false, release: "1.2.0", seenAt: "2026-01-02T03:04:05Z", commit: 4711, clockAheadMs: 12, keeper: true };
/** Today: an instant of today is told without its date elsewhere. */
const RESTORED = new Date();
const two = (value) => String(value).padStart(2, "0");
const RESTORED_DATE = `${RESTORED.getFullYear()}-${two(RESTORED.getMonth() + 1)}-${two(RESTORED.getDate())}`;
const NODES = {
    count: 3,
    data: [
        NODE,
        { ...NODE, node: "b2", isThis: false, state: "silent", host: "fd00::2", secure: true, clockAheadMs: -1500, keeper: false, restoredAt: RESTORED.toISOString() },
        { ...NODE, node: "c3", isThis: false, state: "unknown", host: "third", release: "1.1.0", clockAheadMs: 1000, keeper: false },
    ],
};
const CROSSING = { sent_total: 1234, unsent_total: 5, heard_total: 2345, missing_total: 6, refused_total: 7, losses_total: 2 };
const crossing = (connected) => withNumbers(Object.fromEntries(Object.entries({ ...CROSSING, connected }).map(([name, value]) => [`bodkin_node_events_${name}`, value])));

for (const width of [1280, 360]) {
    await test(`web_nodes_of_a_shared_database_are_drawn_at_${width}_px`, async () => {
        const { page, close } = await open({ viewport: { width, height: 900 } });
        await answerWith(page, { "/api/v1/overview": crossing(1), "/api/v1/nodes": NODES });
        await show(page, "overview");
        await settle(page);
        const row = (name) => page.getByRole("region", { name: "Table of nodes" }).getByRole("row", { name });
        await tells(row(/^a1/), ["● running", "this node, does what is to be done once", "1.2.0", "4,711", "as the database's"]);
        await tells(row(/^b2/), ["▲ unreachable", "1.2.0", "▲ -1,500 ms", RESTORED_DATE]);
        await tells(row(/^c3/), ["◇ unknown", "▲ 1.1.0, another one than this node's", "as the database's"]);
        for (const [name, href] of [[/^a1/, "http://10.0.0.1:8440/"], [/^b2/, "https://[fd00::2]:8440/"]]) {
            const leads = await row(name).getByRole("link").getAttribute("href");
            expect(leads === href, `the link leads to ${leads}`);
        }
        const panel = page.getByRole("region", { name: "Events from node to node" });
        await tells(panel, ["● connected", "Sent 1,234", "Not sent ▲ 5", "Heard 2,345", "Missing ▲ 6", "Refused 7", "NATS was lost 2 times"]);
        await isUsable(page, width);
        if (SHOTS) await page.screenshot({ path: `${SHOTS}/nodes-${width}.png`, fullPage: true });
        await close();
    });
}

await test("web_nodes_that_do_not_hear_each_other_say_so", async () => {
    const { page, close } = await open();
    await answerWith(page, { "/api/v1/overview": crossing(0), "/api/v1/nodes": NODES });
    await show(page, "overview");
    await settle(page);
    await tells(page.getByRole("region", { name: "Events from node to node" }), ["▲ unreachable", "only what is published at their own node"]);
    await close();
});

const KEPT = {
    node: "a1", stream: "NODES", connected: true, server: "nats.example:4222", trouble: null, told: { replicas: 3, onDisk: true, messages: 1, bytes: 4_500 },
    handedOn: [{ ...LANE, name: "events", subject: "nodes.a1.events", waiting: 12, lagUs: 7_000 }],
    taken: { stream: "NODES", consumer: "a1", connected: true, server: "nats.example:4222", connections: 1, trouble: null, position: 40, taken: 2345, repeated: 0, passedOver: 1200, refused: 0, lastRefused: null, lost: 8, underWay: 0, oldestMs: null, waiting: 3, heardMs: Date.now() - 5_000 },
};

for (const [width, colorScheme] of [[1280, "light"], [360, "dark"]]) {
    await test(`web_a_stream_between_nodes_is_drawn_at_${width}_px_${colorScheme}`, async () => {
        const { page, close } = await open({ viewport: { width, height: 900 }, colorScheme });
        await answerWith(page, { "/api/v1/overview": crossing(1), "/api/v1/nodes": NODES, "/api/v1/nodes/events": KEPT });
        await show(page, "overview");
        await settle(page);
        const panel = page.getByRole("region", { name: "Stream between nodes" });
        await tells(panel, ["NODES", "1 message of all nodes, 4.5 kB", "3 servers", "Waiting 12", "the oldest for 7 ms", "Age when stored 10.2 ms", "99 of 100 within 12.3 ms"]);
        await tells(panel, ["1 connection since the start", "Taken 2,345", "Lost ▲ 8", "s ago"]);
        await isUsable(page, width);
        if (SHOTS) await page.screenshot({ path: `${SHOTS}/nodes-stream-${width}.png`, fullPage: true });
        await close();
    });
}

await test("web_a_stream_between_nodes_says_what_is_wrong_with_it", async () => {
    const { page, close } = await open();
    const away = { ...KEPT, connected: false, server: null, told: null, trouble: "stream NODES: stream not found", handedOn: [{ ...KEPT.handedOn[0], trouble: "no answer has come in time", age: null }], taken: { ...KEPT.taken, trouble: "consumer not found" } };
    await answerWith(page, { "/api/v1/overview": crossing(0), "/api/v1/nodes": NODES, "/api/v1/nodes/events": away });
    await show(page, "overview");
    await settle(page);
    const panel = page.getByRole("region", { name: "Stream between nodes" });
    await tells(panel, ["▲ stream NODES: stream not found", "▲ no answer has come in time", "▲ consumer not found", "has said nothing of itself", "Server none", "nothing was stored since the start"]);
    await close();
});

await test("web_nodes_without_a_stream_draw_none", async () => {
    const { page, close } = await open();
    await answerWith(page, { "/api/v1/overview": crossing(1), "/api/v1/nodes": NODES });
    await show(page, "overview");
    await settle(page);
    await page.getByRole("region", { name: "Events from node to node" }).waitFor();
    expect((await page.getByRole("region", { name: "Stream between nodes" }).count()) === 0, "there is a panel");
    await close();
});

await test("web_the_overview_says_what_is_away", async () => {
    const { page, close } = await open();
    await answerWith(page, { "/api/v1/overview": withNumbers({ bodkin_database_connected: 0, bodkin_fleet_lost_total: 3 }) });
    await show(page, "overview");
    await settle(page);
    const panel = page.getByRole("region", { name: "This node" });
    await tells(panel, ["▲ The shared database is not reached", "▲ 3 events were lost for the fleet"]);
    expect((await panel.getByText("Nothing was lost or late").count()) === 0, "it says that nothing was lost");
    await close();
});

await test("web_a_cloud_by_itself_says_nothing_of_nodes", async () => {
    const { page, close } = await open();
    await show(page, "overview");
    await settle(page);
    for (const name of ["Nodes of this cloud", "Events from node to node"]) expect((await page.getByRole("region", { name }).count()) === 0, `there is a panel ${name}`);
    await close();
});

await test("web_a_certificate_that_ends_soon_says_so", async () => {
    const { page, close } = await open();
    const DAY_MS = 86_400_000;
    const inDays = (days) => new Date(Date.now() + days * DAY_MS).toISOString();
    const issued = { state: "valid", name: "lamp", serial: "0a1b", notBefore: inDays(-300), notAfter: inDays(13), issuedAt: inDays(-300), revokedAt: null };
    const data = [issued, { ...issued, name: "oven", serial: "0a1c", notAfter: inDays(15) }, { ...issued, name: "fan", serial: "0a1d", state: "expired", notAfter: inDays(-1) }];
    await answerWith(page, { "/api/v1/overview": (overview) => ({ ...overview, secure: true }), "/api/v1/certificates": { count: data.length, data } });
    await show(page, "systems");
    await settle(page);
    const row = (name) => page.getByRole("region", { name: "Table of certificates" }).getByRole("row", { name });
    await tells(row(/^lamp/), ["◇ ends soon", "in 13 d"]);
    await tells(row(/^oven/), ["● valid", "in 15 d"]);
    await tells(row(/^fan/), ["▲ expired"]);
    await close();
});

await test("web_rules_are_listed_and_drawn_as_a_matrix", async () => {
    const { page, close } = await open();
    await show(page, "authorization");
    await settle(page);
    await tells(page.getByRole("region", { name: "Table of rules" }).getByRole("row", { name: /historian/ }), ["historian", "temperature", "sensor", "HTTP-INSECURE-JSON"]);
    const matrix = page.getByRole("region", { name: "Matrix of rules" });
    const heads = await matrix.getByRole("columnheader").allInnerTexts();
    const at = heads.indexOf("temperature of sensor");
    const cells = await matrix.getByRole("row", { name: /^historian/ }).locator("th, td").allInnerTexts();
    expect(at > 0 && cells[at] === "● may" && cells.filter((cell) => cell === "● may").length === 1, `${heads} ${cells}`);
    await close();
});

await test("web_events_that_wait_by_deadline_are_told_and_drawn", async () => {
    const { page, close } = await open();
    await answerWith(page, { "/api/v1/overview": withNumbers({ bodkin_events_waiting: 1717 }) });
    await show(page, "broker");
    await settle(page);
    const panel = page.getByRole("region", { name: "Queue and replication" });
    await tells(panel, ["Waiting by deadline 1,717"]);
    // A curve needs two readings.
    const chart = panel.getByRole("figure");
    await chart.waitFor();
    await tells(chart, ["Events that wait for their turn", "waiting 1,717"]);
    await close();
});

await test("web_what_has_not_come_is_drawn_as_no_data", async () => {
    const { page, close } = await open();
    let answer;
    const held = new Promise((release) => (answer = release));
    await answerWith(page, {});
    await page.route("**/api/v1/services", async (route) => {
        await held;
        await route.continue();
    });
    await show(page, "services");
    const panel = page.locator("main .panel").first();
    await panel.getByText("No data yet.").waitFor();
    expect((await panel.locator(".state").innerText()).trim() === "○ no data", await panel.locator(".state").innerText());
    expect((await panel.getByText("There are no services").count()) === 0, "what has not come is drawn as nothing");
    await isUsable(page, 1280);
    answer();
    await panel.locator(".state.live").waitFor();
    expect((await panel.getByText("No data yet.").count()) === 0, "it still says that nothing has come");
    await close();
});

await test("web_states_are_read_without_colours", async () => {
    const { page, close } = await open({ forcedColors: "active" });
    const numbers = { bodkin_fleet_connected: 1, bodkin_database_suspended: 1, bodkin_topic_late_total: 3 };
    const told = { "/api/v1/overview": withNumbers({ ...numbers, bodkin_node_events_connected: 1, bodkin_node_events_missing_total: 6 }), "/api/v1/nodes": NODES, "/api/v1/fleet": FLEET };
    await answerWith(page, { ...told, "/api/v1/graphs": withLinks([{ ...LINK, down: "nobody answers" }]) });
    const kinds = new Set();
    let seen = 0;
    for (const name of PAGES) {
        await show(page, name);
        await settle(page);
        const states = await page.locator(".mark, .state, .facts .bad dd:nth-of-type(1)").evaluateAll((elements) =>
            elements.map((element) => ({ text: element.textContent.trim().replaceAll(/\s+/g, " "), colour: getComputedStyle(element).color, kind: element.className })),
        );
        // A sign of its own shape, and a word or number behind it.
        for (const { text } of states) expect(/^[●▲◇○] [\p{L}\d]/u.test(text), `${name}: “${text}” has no sign or no word`);
        const colours = new Set(states.map(({ colour }) => colour));
        expect(colours.size <= 1, `${name}: states have the colours ${[...colours]}, although the reader's own are wanted`);
        for (const { kind } of states) kinds.add(kind.split(" ").filter((word) => !word.startsWith("svelte")).join(" "));
        seen += states.length;
        const findings = await severeFindings(page);
        expect(findings.length === 0, `${name}: ${findings.join("; ")}`);
    }
    for (const kind of ["mark good", "mark bad", "mark other", "state live"]) expect(kinds.has(kind), `no ${kind} was seen: ${[...kinds]}`);
    expect(seen > 30, `${seen} states were seen`);
    if (SHOTS) {
        await show(page, "overview");
        await settle(page);
        await page.screenshot({ path: `${SHOTS}/forced-colours.png`, fullPage: true });
    }
    await close();
});

await test("web_a_flooded_tail_says_that_it_is_a_sample", async () => {
    const { page, close } = await open();
    const event = { eventType: "FLOOD", metaData: null, payload: "1", timeStamp: "2026-01-01T00:00:00Z" };
    const burst = `data: ${JSON.stringify(event)}\n\n`.repeat(BURST_EVENTS);
    // Each burst ends the stream, and the tail opens it again after a second: of each later one it draws only a part.
    const headers = { "access-control-allow-origin": new URL(base).origin, "access-control-allow-credentials": "true" };
    await page.route("**/eventhandler/events?**", (route) => route.fulfill({ contentType: "text/event-stream", headers, body: burst }));
    await show(page, "events?type=FLOOD");
    await settle(page);
    await page.getByRole("button", { name: "Listen" }).click();
    const told = page.getByText(/ of the newest [\d,]+ are shown: a sample, for they came faster than they can be read/);
    await told.waitFor();
    const [, shown, newest] = /; ([\d,]+) of the newest ([\d,]+) are shown/.exec(await told.innerText()) ?? [];
    const number = (text) => Number(text?.replaceAll(",", ""));
    expect(number(shown) <= 500 && number(newest) > number(shown), await told.innerText());
    await close();
});

plant.stop();
await browser.close();
await cloud.stop();
finish();
