// What the pages decide without a browser: prints `ok NAME` or `not ok NAME: WHY` a test.

import { deepStrictEqual as same } from "node:assert";
import { fileURLToPath } from "node:url";
import { runnerImport } from "vite";
import { expect, finish, test } from "./report.mjs";

const load = async (name) => {
    const { module } = await runnerImport(fileURLToPath(new URL(`../src/${name}.ts`, import.meta.url)), { configFile: false, logLevel: "error" });
    return module;
};
const { draw, cut, BOX_WIDTH_PX, BOX_HEIGHT_PX } = await load("layers");
const { mapOf } = await load("map");
const { ruleFor, serviceLabel } = await load("rule");
const { until } = await load("format");
const { waitMs, REFUSED_MS_MAX } = await load("backoff");
const { contentOf } = await load("model");
const { differing } = await load("report");

const thing = (id) => ({ id, name: id.toUpperCase() });

await test("web_unit_things_stand_in_columns_and_lines_go_from_side_to_side", () => {
    const { boxes, lines, lefts, width, height } = draw([[thing("a"), thing("b")], [], [thing("c")]], [{ from: "b", to: "c" }], 60);
    same(boxes.map(({ id }) => id), ["a", "b", "c"]);
    const [a, b, c] = boxes;
    expect(a.x === b.x && a.x === lefts[0] && c.x === lefts[2] && a.y === c.y, "columns and rows are straight");
    expect(b.y >= a.y + BOX_HEIGHT_PX && b.y + BOX_HEIGHT_PX <= height && c.x + BOX_WIDTH_PX === width, "boxes lie apart, and inside the drawing");
    const [x1, y1, ...rest] = lines[0].d.split(/[MC ]/).filter(Boolean).map(Number);
    same([lines.length, x1, y1, ...rest.slice(-2)], [1, b.x + BOX_WIDTH_PX, b.y + BOX_HEIGHT_PX / 2, c.x, c.y + BOX_HEIGHT_PX / 2]);
});

await test("web_unit_of_long_columns_a_part_is_drawn_and_no_line_ends_nowhere", () => {
    const many = Array.from({ length: 70 }, (_, at) => thing(`many-${at}`));
    const edges = [{ from: "many-0", to: "one" }, { from: "many-69", to: "one" }, { from: "gone", to: "one" }];
    const few = draw([many, [thing("one")]], edges, 60);
    same([few.boxes.length, few.lines.map(({ from }) => from)], [61, ["many-0"]]);
    const all = draw([many, [thing("one")]], edges, 120);
    same([all.boxes.length, all.lines.map(({ from }) => from)], [71, ["many-0", "many-69"]]);
    expect(all.height > few.height && few.height === draw([many.slice(0, 60)], [], 60).height, "it is as high as what is drawn");
    expect(draw([[], []], [], 60).height > 0, "columns without things have a place for their heads");
});

await test("web_unit_a_name_is_cut_where_its_box_ends", () => {
    same([cut("x".repeat(28)), cut("x".repeat(29))], ["x".repeat(28), `${"x".repeat(27)}…`]);
});

const system = (systemName) => ({ systemName });
const rule = (consumer, service, provider) => ({ consumerSystem: system(consumer), providerSystem: system(provider), serviceDefinition: { serviceDefinition: service } });
const service = (serviceDefinition, provider) => ({ serviceDefinition, provider: system(provider) });
const PLANT = {
    services: [service("heat", "stove"), service("light", "lamp"), service("orchestration-service", "orchestrator")],
    rules: [rule("display", "heat", "stove"), rule("display", "cold", "fridge")],
    cloudRules: [{ cloud: { operator: "test", name: "two" }, provider: system("stove"), serviceDefinition: { serviceDefinition: "heat" } }],
    systems: ["stove", "lamp", "display", "fridge", "loner", "orchestrator", "gateway"].map(system),
    clouds: [{ operator: "test", name: "one", own: true }, { operator: "test", name: "two", own: false }, { operator: "test", name: "three", own: false }],
};
const names = ({ columns }) => columns.map((column) => column.map(({ name }) => name));
const lines = ({ edges }) => edges.map(({ from, to }) => `${from} -> ${to}`);

await test("web_unit_the_map_has_everybody_once_and_a_line_for_each_rule_and_service", () => {
    const whole = mapOf(PLANT, { text: "", core: false });
    same(names(whole), [
        ["cloud test/three", "cloud test/two", "display", "loner"],
        ["heat of stove", "light of lamp"],
        ["lamp", "stove"],
    ]);
    same(lines(whole), [
        "consumer display -> service heat of stove",
        "consumer display -> service cold of fridge",
        "consumer cloud test/two -> service heat of stove",
        "service heat of stove -> provider stove",
        "service light of lamp -> provider lamp",
    ]);
});

await test("web_unit_core_systems_are_on_the_map_when_they_are_asked_for", () => {
    const [consumers, services, providers] = names(mapOf(PLANT, { text: "", core: true }));
    expect(consumers.includes("gateway") && services.includes("orchestration-service of orchestrator") && providers.includes("orchestrator"), "they are not there");
    expect(!consumers.includes("orchestrator"), "who offers something is not idle");
});

await test("web_unit_who_looks_for_a_consumer_sees_of_whom_it_is_what_it_uses", () => {
    same(names(mapOf(PLANT, { text: "DISP", core: false })), [["display"], ["heat of stove"], ["stove"]]);
    same(names(mapOf(PLANT, { text: "lamp", core: false })), [[], ["light of lamp"], ["lamp"]]);
    same(names(mapOf(PLANT, { text: "nobody", core: false })), [[], [], []]);
});

await test("web_unit_a_rule_is_made_for_a_service_over_all_its_interfaces", () => {
    const heat = {
        id: 7,
        serviceDefinition: { id: 3, serviceDefinition: "heat" },
        provider: { id: 5, systemName: "stove" },
        interfaces: [{ id: 1, interfaceName: "HTTP-SECURE-JSON" }, { id: 2, interfaceName: "HTTP-INSECURE-JSON" }],
    };
    same(ruleFor(9, heat), { consumerId: 9, providerIds: [5], serviceDefinitionIds: [3], interfaceIds: [1, 2] });
    same(serviceLabel(heat), "heat of stove (HTTP-SECURE-JSON, HTTP-INSECURE-JSON)");
});

await test("web_unit_an_end_is_told_by_what_is_left_and_by_how_long_ago_it_was", () => {
    const nowMs = Date.UTC(2026, 0, 1);
    const end = (leftS) => until(new Date(nowMs + leftS * 1000).toISOString(), nowMs);
    same([end(90), end(59), end(0), end(-1), end(-7200)], ["in 1.5 min", "in 59 s", "in 0 s", "1 s ago", "2 h ago"]);
});

await test("web_unit_who_was_refused_asks_more_and_more_seldom", () => {
    same([0, 1, 2, 3, 6, 60].map((refusals) => waitMs(1000, refusals)), [1000, 2000, 4000, 8000, REFUSED_MS_MAX, REFUSED_MS_MAX]);
    expect(waitMs(2 * REFUSED_MS_MAX, 3) === 2 * REFUSED_MS_MAX, "a question that is asked seldom is not asked more often");
    let [asked, atMs] = [0, 0];
    for (; atMs < 86_400_000; asked += 1) atMs += waitMs(1000, asked + 1);
    expect(asked < 1500, `${asked} questions a day`);
});

await test("web_unit_a_calibration_tells_what_its_steps_cost", () => {
    const calibration = {
        schema: "bodkin-calibration-3",
        machine: "a machine",
        cores: 2,
        loads: ["1x2"],
        mean_off_percent: 12.5,
        events: [{ load: { publishers: 1 }, costs: { publisher_switch: { mean_us: 5.5, squared_variation: 1 }, execute_each_us: 3, wake: { usual_us: 1 } } }],
        orchestration: { steps: [{ name: "parse", work_us: 0.25 }, { name: "torn" }] },
    };
    same(contentOf(calibration).steps, [
        { of: "an event", name: "publisher switch", meanUs: 5.5 },
        { of: "an orchestration", name: "parse", meanUs: 0.25 },
    ]);
    same(contentOf({ ...calibration, events: null, orchestration: 7 }).steps, []);
    same(contentOf({ schema: "bodkin-recording-1" }).kind, "recording");
});

await test("web_unit_of_two_reports_the_conditions_are_told_that_differ", () => {
    const report = (conditions) => ({ experiment: "query", conditions });
    const [one, two] = [report({ cores: 2, cpu: "a", seed: 1, server: "own" }), report({ cores: 4, cpu: "a", seed: 2 })];
    same(differing(one, two), [["cores", "2", "4"], ["server", "own", "not told"]]);
    same(differing(one, one), []);
});

finish();
