// A small plant for tests: a local cloud, systems in it, and traffic.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

const READY_MS_MAX = 60_000;

/** Runs the binary, which tells what it does in lines of JSON; `detached`: in a session of its own, which a signal to this one does not reach. */
export const run = (binary, words, detached = false) => {
    const child = spawn(binary, words, { stdio: ["ignore", "pipe", "ignore"], detached });
    return { child, ended: new Promise((resolve) => child.once("exit", resolve)) };
};

/** The first line that it tells. */
export const firstLine = async ({ child, ended }) => {
    const line = await new Promise((resolve, reject) => {
        let text = "";
        const late = setTimeout(() => reject(new Error("it did not get ready")), READY_MS_MAX);
        ended.then((code) => reject(new Error(`it ended with ${code}`)));
        child.stdout.on("data", (chunk) => {
            text += chunk;
            const [first, rest] = text.split("\n", 2);
            if (rest === undefined) return;
            clearTimeout(late);
            resolve(first);
        });
    });
    return JSON.parse(line);
};

/** Starts a local cloud on ports that the system chooses; `flags` besides. */
export const start = async (binary, flags, detached = false) => {
    const data = await mkdtemp(join(tmpdir(), "bodkin-web-"));
    const { child, ended } = run(binary, ["up", "--any-port", "--data", data, "--output", "json", ...flags], detached);
    const ready = await firstLine({ child, ended });
    const stop = async () => {
        child.kill("SIGKILL");
        await ended;
        await rm(data, { recursive: true, force: true });
    };
    return { ready, data, child, stop };
};

/** Where a listener of the ready line is. */
export const place = (ready, name) => {
    const listener = ready.listeners[name];
    return typeof listener === "string" ? listener : listener.address;
};

const call = async (method, url, body) => {
    const answer = await fetch(url, { method, headers: { "Content-Type": "application/json" }, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
};

/** Three operators deep: columns in the middle of its drawing have no heads. */
const GRAPH = `
[graph]
name = "press"
cores = 1

[[supplier]]
topic = "left"
shape = "f64"
period_ms = 1

[[supplier]]
topic = "right"
shape = "f64"
period_ms = 1

[[operator]]
name = "both"
kind = "concatenate"
inputs = ["left", "right"]
relative_validity_ms = 500

[[operator]]
name = "smooth"
kind = "moving_average"
inputs = ["left"]
window = 4

[[operator]]
name = "smoother"
kind = "moving_average"
inputs = ["smooth"]
window = 4

[[operator]]
name = "smoothest"
kind = "moving_average"
inputs = ["smoother"]
window = 4

[[output]]
topic = "pairs"
from = "both"

[[output]]
topic = "calm"
from = "smoothest"
`;

/** Systems, services, a rule, a pushed subscription, a topic, a graph, and events of them until `stop` is called. */
export const populate = async (cloud) => {
    const url = (name) => `http://${place(cloud.ready, name)}`;
    const system = (systemName, port) => ({ systemName, address: "127.0.0.1", port });
    const taken = createServer((request, answer) => request.resume().on("end", () => answer.writeHead(200).end()));
    await new Promise((resolve) => taken.listen(0, "127.0.0.1", resolve));
    const push = taken.address().port;

    const sensor = system("sensor", 9000);
    for (const [service, more] of [["temperature", {}], ["vibration", { endOfValidity: new Date(Date.now() + 3_600_000).toISOString() }], ["pressure", {}]]) {
        const form = { serviceDefinition: service, serviceUri: `/${service}`, providerSystem: sensor, interfaces: ["HTTP-INSECURE-JSON"], metadata: { hall: "3" }, ...more };
        await call("POST", `${url("serviceregistry")}/serviceregistry/register`, form);
    }
    for (const other of [system("display", 9001), system("historian", push)]) await call("POST", `${url("serviceregistry")}/serviceregistry/register-system`, other);
    const systems = (await call("GET", `${url("monitor")}/serviceregistry/mgmt/systems`)).data;
    const services = (await call("GET", `${url("monitor")}/serviceregistry/mgmt`)).data;
    const id = (name) => systems.find((one) => one.systemName === name).id;
    const temperature = services.find((one) => one.serviceDefinition.serviceDefinition === "temperature");
    await call("POST", `${url("monitor")}/authorization/mgmt/intracloud`, {
        consumerId: id("historian"),
        providerIds: [id("sensor")],
        serviceDefinitionIds: [temperature.serviceDefinition.id],
        interfaceIds: [temperature.interfaces[0].id],
    });
    await call("POST", `${url("orchestrator")}/orchestrator/mgmt/store`, [
        { serviceDefinitionName: "temperature", consumerSystemId: id("historian"), providerSystem: sensor, serviceInterfaceName: "HTTP-INSECURE-JSON", priority: 1 },
    ]);
    await call("POST", `${url("monitor")}/api/v1/topics`, { event_type: "VIBRATION", period_ms: 20, deadline_ms: 200, loss_tolerance: 3, retention: 4 });
    await call("POST", `${url("monitor")}/api/v1/graphs`, { file: GRAPH });
    await call("POST", `${url("eventhandler")}/eventhandler/subscribe`, {
        eventType: "TEMPERATURE",
        subscriberSystem: system("historian", push),
        notifyUri: "/heard",
        matchMetaData: false,
    });

    let number = 0;
    const publish = (eventType, payload) =>
        call("POST", `${url("eventhandler")}/eventhandler/publish`, { eventType, source: sensor, payload: String(payload), metaData: { hall: "3" } }).catch(() => undefined);
    const timer = setInterval(() => {
        number += 1;
        void publish("TEMPERATURE", (21 + Math.sin(number / 20)).toFixed(2));
        void publish("VIBRATION", number % 7);
        void publish("LEFT", number);
        void publish("RIGHT", -number);
    }, 50);
    const stop = () => {
        clearInterval(timer);
        taken.closeAllConnections();
        taken.close();
    };
    return { stop };
};
