// How fluent the dashboard is with many services, topics and events, and what ten open browsers cost the data plane. Measures and tells; nothing fails by it, and
// `./x test` does not run it: figures are for a quiet machine. BODKIN: a release build; BROWSER: Chromium; OUT: the file in which the reports of all runs go.
//
//   PARTS=fluent,cost SERVICES=10000 RULES=1000 TOPICS=1000 RATE=1000 RUNS=10 BENCH_S=10 BROWSERS=10 node test/load.mjs
//
// Cloud, bench and browsers have a session each, among which the kernel shares the processors as it does among services of systemd; in one session with the bench the cloud's shard
// (nice -20) takes the bench's subscriber its processor. Browsers on the same machine take processors from publisher, broker and subscriber alike. What the cloud itself does for them
// is told apart by three means: each run has a bare relay beside it, which suffers as well; between the runs without and with browsers is one with as many listeners of what browsers
// hear, which draw nothing; and behind them is one with browsers that take only what the others leave, as browsers on a desk elsewhere do.

import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { place, start } from "./plant.mjs";

const { BODKIN, BROWSER } = process.env;
const number = (name, otherwise) => Number(process.env[name] ?? otherwise);
const parts = (process.env.PARTS ?? "fluent,cost").split(",");
const [SERVICES, TOPICS, RATE] = [number("SERVICES", 10_000), number("TOPICS", 1_000), number("RATE", 1_000)];
const RULES = number("RULES", 1_000);
const [RUNS, BENCH_S, BROWSERS] = [number("RUNS", 10), number("BENCH_S", 10), number("BROWSERS", 10)];
/** Consumers that the rules are for. */
const CONSUMERS = 40;
/** Milliseconds until every other service ends: longer than anybody looks. */
const VALID_MS = 3_600_000;
/** Lanes of the fleet on the page Events. */
const LANES_OF_FLEET = 30;
/** Requests at a time while the cloud is filled. */
const LANES = 32;
/** Seconds for which frames are counted. */
const WATCHED_S = 10;
const PATIENCE_MS = 120_000;
/** Milliseconds between two filters. */
const FILTER_MS = 250;
/** Pages that are open during a run, in turn, and what each hears of the cloud. */
const PAGES = {
    overview: ["overview", "platform", "event-log"],
    events: ["overview", "event-types", "subscriptions", "dead-letters"],
    broker: ["overview", "topics", "platform", "event-log", "stages"],
    graphs: ["overview", "graphs"],
    clouds: ["overview", "clouds", "relays"],
};

const folder = await mkdtemp(join(tmpdir(), "bodkin-load-"));
const file = join(folder, "bodkin.toml");
const topic = (at) => `[[topic]]\nevent_type = "topic-${at}"\nperiod_s = 10\ndeadline_s = 10\n`;
// Of its lanes each has an event that waits, for nobody listens there. What is measured for its cost to the data plane forwards nothing.
const lanes = Array.from({ length: LANES_OF_FLEET }, (_, at) => `lane-${at} = ["forwarded-${at}"]`).join(", ");
const fleet = parts.includes("cost") ? "" : `\n[fleet]\nservers = ["nats://127.0.0.1:9"]\nedge = "edge-7"\nlanes = { ${lanes} }\n`;
await writeFile(file, Array.from({ length: TOPICS }, (_, at) => topic(at)).join("\n") + fleet);
const cloud = await start(BODKIN, ["--insecure", "--config", file], true);
const agent = new Agent({ keepAlive: true, maxSockets: LANES });
const at = (name) => new URL(`http://${place(cloud.ready, name)}/`);
const post = (name, path, body) =>
    new Promise((resolve, reject) => {
        const { hostname, port } = at(name);
        const asked = request({ agent, hostname, port, path, method: "POST", headers: { "Content-Type": "application/json" } }, (answer) => {
            const pieces = [];
            answer.on("data", (piece) => pieces.push(piece)).on("end", () => resolve({ status: answer.statusCode, body: Buffer.concat(pieces).toString() }));
        });
        asked.on("error", reject).end(JSON.stringify(body));
    });
const sensor = { systemName: "sensor", address: "127.0.0.1", port: 9000 };
const launch = (executablePath) => chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const browser = await launch(BROWSER);
const open = async (hash, whose = browser) => {
    const page = await (await whose.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    const begun = Date.now();
    await page.goto(`${at("monitor")}#/${hash}`);
    await page.waitForFunction(() => document.querySelector(".state.live") !== null && document.querySelector(".state.waiting") === null);
    const readyMs = Date.now() - begun;
    const paintMs = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN);
    return { page, there: `painted first after ${paintMs.toFixed(0)} ms, there after ${readyMs} ms` };
};

/** Frames of a page in some seconds, while `act` is done again and again: how many a second, and the longest time between two. */
const frames = async (page, act) => {
    let goes = true;
    const acting = (async () => {
        for (let step = 0; goes; step += 1) await act(step);
    })();
    const told = await page.evaluate(
        (ms) =>
            new Promise((resolve) => {
                const begun = performance.now();
                let [count, last, longest] = [0, begun, 0];
                const frame = (now) => {
                    count += 1;
                    longest = Math.max(longest, now - last);
                    last = now;
                    if (now - begun < ms) requestAnimationFrame(frame);
                    else resolve({ perSecond: (count * 1000) / (now - begun), longestMs: longest });
                };
                requestAnimationFrame(frame);
            }),
        WATCHED_S * 1000,
    );
    goes = false;
    await acting;
    return `${told.perSecond.toFixed(1)} frames/s, the longest time between two ${told.longestMs.toFixed(0)} ms`;
};
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

if (parts.includes("fluent")) {
    const begun = Date.now();
    const made = async (name, path, form) => {
        const { status, body } = await post(name, path, form);
        if (status !== 201) throw new Error(`${path}: ${status} ${body}`);
        return JSON.parse(body);
    };
    const each = async (count, act) => {
        let next = 0;
        const lane = async () => {
            while (next < count) await act(next++);
        };
        await Promise.all(Array.from({ length: LANES }, lane));
    };
    const services = [];
    const ends = { endOfValidity: new Date(begun + VALID_MS).toISOString() };
    await each(SERVICES, async (at) => {
        const providerSystem = { ...sensor, port: 10_000 + (at % 500) };
        const form = { serviceDefinition: `service-${at}`, serviceUri: "/", providerSystem, interfaces: ["HTTP-INSECURE-JSON"], ...(at % 2 === 0 ? ends : {}) };
        services[at] = await made("serviceregistry", "/serviceregistry/register", form);
    });
    console.log(`note ${SERVICES} services registered in ${Date.now() - begun} ms, every other one with an end; ${TOPICS} topics declared`);
    const consumers = [];
    await each(CONSUMERS, async (at) => {
        consumers[at] = await made("serviceregistry", "/serviceregistry/register-system", { ...sensor, systemName: `display-${at}` });
    });
    await each(Math.min(RULES, SERVICES), async (at) => {
        const { provider, serviceDefinition, interfaces } = services[at];
        const form = { consumerId: consumers[at % CONSUMERS].id, providerIds: [provider.id], serviceDefinitionIds: [serviceDefinition.id], interfaceIds: [interfaces[0].id] };
        await made("monitor", "/authorization/mgmt/intracloud", form);
    });

    await post("serviceregistry", "/serviceregistry/register-system", sensor);
    for (let at = 0; at < LANES_OF_FLEET; at += 1) await post("eventhandler", "/eventhandler/publish", { eventType: `forwarded-${at}`, source: sensor, payload: "1" });
    const list = await open("services");
    const scroll = (page) => (step) => page.mouse.wheel(0, step % 40 < 20 ? 200 : -200).then(() => pause(16));
    console.log(`note services: ${list.there}; scrolled: ${await frames(list.page, scroll(list.page))}`);
    const search = list.page.getByRole("searchbox").first();
    const words = ["service-9", "service-99", "service-1", ""];
    console.log(`note services, filtered by another word every ${FILTER_MS} ms: ${await frames(list.page, async (step) => (await search.fill(words[step % words.length]), pause(FILTER_MS)))}`);
    await list.page.context().close();

    const broker = await open("broker");
    console.log(`note broker with ${TOPICS} topics: ${broker.there}; scrolled: ${await frames(broker.page, scroll(broker.page))}`);
    await broker.page.context().close();

    const rules = `${Math.min(RULES, SERVICES)} rules`;
    const rest = { map: rules, authorization: rules, overview: "everything", events: `${TOPICS} event types and ${LANES_OF_FLEET} lanes of a fleet that is away` };
    for (const [name, of] of Object.entries(rest)) {
        const { page, there } = await open(name);
        console.log(`note ${name} with ${of}: ${there}; scrolled: ${await frames(page, scroll(page))}`);
        await page.context().close();
    }

    let published = 0;
    const due = Date.now();
    const timer = setInterval(() => {
        for (const wanted = ((Date.now() - due) * RATE) / 1000; published < wanted; published += 1) {
            void post("eventhandler", "/eventhandler/publish", { eventType: "TAILED", source: sensor, payload: String(published) }).catch(() => undefined);
        }
    }, 5);
    const events = await open("events?type=TAILED");
    await events.page.getByRole("button", { name: "Listen" }).click();
    const told = events.page.getByText(/ came; .*are shown/);
    await told.waitFor();
    const came = async () => Number((await told.textContent()).trim().split(" ")[0].replaceAll(",", ""));
    const [before, begunAt] = [await came(), Date.now()];
    const fluent = await frames(events.page, () => pause(100));
    const heard = ((await came()) - before) / ((Date.now() - begunAt) / 1000);
    console.log(`note events: tailed at ${heard.toFixed(0)} events/s: ${fluent}`);
    clearInterval(timer);
    await events.page.context().close();
}

/** Of each figure of the broker and of the relay beside it: median, least and greatest of the runs. */
const tell = (reports) => {
    for (const [who, runs] of Object.entries(reports)) {
        for (const { label } of runs[0].outcomes) {
            const figures = runs.map(({ outcomes }) => outcomes.find((outcome) => outcome.label === label));
            for (const figure of ["events_per_s", "p50_us", "p99_us"]) {
                const values = figures.map((one) => one?.repeats?.[figure]?.median ?? one?.[figure]).filter(Number.isFinite).sort((a, b) => a - b);
                if (values.length === 0) continue;
                console.log(`note ${who}: ${label}: ${figure} ${values[values.length >> 1]} (${values[0]} to ${values.at(-1)})`);
            }
        }
    }
};
/** A listener of what a page hears, which throws it away; what it gives ends it. */
const hear = (page) =>
    new Promise((resolve, reject) => {
        const { hostname, port } = at("monitor");
        const of = PAGES[page].map((part) => `/api/v1/${part}`).join(",");
        const asked = request({ hostname, port, path: `/api/v1/live?of=${of}` }, (answer) => {
            if (answer.statusCode !== 200) return reject(new Error(`a live stream was answered ${answer.statusCode}`));
            answer.resume();
            answer.on("error", () => undefined);
            resolve(async () => void asked.destroy());
        });
        asked.on("error", reject).end();
    });

if (parts.includes("cost")) {
    const words = ["bench", "event", "--scenario", "A", "--repeat", "1", "--seconds", String(BENCH_S), "--output", "json"];
    const target = ["--target", at("serviceregistry").origin, "--event-handler", at("eventhandler").origin];
    const run = () => new Promise((resolve, reject) => {
        execFile("setsid", ["--wait", BODKIN, ...words, ...target], { encoding: "utf8", maxBuffer: 64 << 20 }, (error, out) => (error ? reject(error) : resolve(JSON.parse(out))));
    });
    const pages = Array.from({ length: BROWSERS }, (_, index) => Object.keys(PAGES)[index % Object.keys(PAGES).length]);
    // A session's share of the processors is set by its own nice value (sched(7), autogroup), which its processes inherit.
    const yields = join(folder, "yielding-browser");
    await writeFile(yields, `#!/bin/sh\necho 19 > /proc/self/autogroup\nexec "${BROWSER}" "$@"\n`, { mode: 0o755 });
    const yielding = await launch(yields);
    const look = (whose) => async (page) => (({ page }) => () => page.context().close())(await open(page, whose));
    const watchers = {
        nobody: () => [],
        listeners: () => Promise.all(pages.map(hear)),
        browsers: () => Promise.all(pages.map(look(browser))),
        "browsers that yield": () => Promise.all(pages.map(look(yielding))),
    };
    const reports = Object.fromEntries(Object.keys(watchers).map((who) => [who, []]));
    for (let turn = 0; turn < RUNS; turn += 1) {
        for (const [who, watch] of Object.entries(watchers)) {
            const ends = await watch();
            reports[who].push(await run());
            await Promise.all(ends.map((end) => end()));
        }
        console.log(`note run ${turn + 1} of ${RUNS} is over`);
    }
    const out = process.env.OUT ?? join(tmpdir(), "bodkin-ten-browsers.json");
    tell(reports);
    await writeFile(out, JSON.stringify(reports));
    console.log(`note ${BROWSERS} watchers, ${RUNS} runs each of ${BENCH_S} s; the reports are in ${out}`);
    await yielding.close();
}

await browser.close();
agent.destroy();
await cloud.stop();
await rm(folder, { recursive: true, force: true });
process.exit(0);
