// What the pages decide without a browser: prints `ok NAME` or `not ok NAME: WHY` a test.

import { deepStrictEqual as same } from "node:assert";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { runnerImport } from "vite";
import { expect, finish, test } from "./report.mjs";

const load = async (name) => {
    const { module } = await runnerImport(fileURLToPath(new URL(`../src/${name}.ts`, import.meta.url)), { configFile: false, logLevel: "error" });
    return module;
};
const { draw, cut, untangled, BOX_HEIGHT_PX } = await load("layers");
const { mapOf } = await load("map");
const { ruleFor, serviceLabel } = await load("rule");
const { until } = await load("format");
const { waitMs, REFUSED_MS_MAX } = await load("backoff");
const { contentOf } = await load("model");
const { differing } = await load("report");
const { troubles, TROUBLES } = await load("troubles");
const { glance } = await load("audit");
const { hasWords, numbers } = await load("table");
const { wider } = await load("buckets");
const { drawn, visible, watch } = await load("visible");

const thing = (id) => ({ id, name: id.toUpperCase() });

await test("web_unit_things_stand_in_columns_and_lines_go_from_side_to_side", () => {
    const { boxes, lines, lefts, width, height } = draw([[thing("a"), thing("b")], [], [thing("c")]], [{ from: "b", to: "c" }], 60);
    same(boxes.map(({ id }) => id), ["a", "b", "c"]);
    const [a, b, c] = boxes;
    expect(a.x === b.x && a.x === lefts[0] && c.x === lefts[2] && a.y === c.y, "columns and rows are straight");
    expect(b.y >= a.y + BOX_HEIGHT_PX && b.y + BOX_HEIGHT_PX <= height && c.x + c.width === width, "boxes lie apart, and inside the drawing");
    const [x1, y1, ...rest] = lines[0].d.split(/[MC ]/).filter(Boolean).map(Number);
    same([lines.length, x1, y1, ...rest.slice(-2)], [1, b.x + b.width, b.y + BOX_HEIGHT_PX / 2, c.x, c.y + BOX_HEIGHT_PX / 2]);
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

await test("web_unit_things_stand_where_few_lines_cross", () => {
    const order = (columns, edges) => untangled(columns.map((column) => column.map(thing)), edges.map(([from, to]) => ({ from, to }))).map((column) => column.map(({ id }) => id));
    same(order([["a", "b"], ["x", "y"], ["p", "q"]], [["a", "y"], ["b", "x"], ["y", "p"], ["x", "q"]]), [["a", "b"], ["y", "x"], ["p", "q"]]);
    same(order([["a", "b", "c"], ["x", "y"]], [["a", "x"], ["c", "x"], ["b", "y"]]), [["a", "b", "c"], ["x", "y"]]);
    same(order([["a"], ["x", "y", "z"]], [["a", "z"]]), [["a"], ["z", "x", "y"]]);
    same(order([["a", "b"], [], ["y", "x"]], [["a", "x"], ["b", "y"], ["gone", "y"]]), [["a", "b"], [], ["x", "y"]]);
});

await test("web_unit_a_name_is_cut_where_its_box_ends", () => {
    same([cut("x".repeat(44)), cut("x".repeat(45))], ["x".repeat(44), `${"x".repeat(43)}…`]);
    const [narrow, wide] = draw([[thing("a")], [thing("a-name-of-some-length")]], [], 60).boxes.map(({ width }) => width);
    expect(narrow < wide, `boxes are as wide as their names: ${narrow}, ${wide}`);
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

await test("web_unit_a_calibration_tells_how_far_each_load_is_off_that_was_left_out", () => {
    const off = (more) => ({ mean_us: 80, mean_off_percent: -12.5, p99_us: 200, p99_off_percent: 40, ...more });
    const left_out = {
        events: [{ load: "1x2", by_others: { predicted: [off({})] } }, { load: "4x4", by_others: { nothing: "no response" } }],
        orchestration: [],
        graph: [{ load: "50:1", by_others: { predicted: [off({ level: 0 }), off({ level: 1, mean_us: 90 })] } }, { load: "torn", by_others: { predicted: [{ mean_us: 1 }] } }],
    };
    const predicted = { meanUs: 80, meanOffPercent: -12.5, p99Us: 200, p99OffPercent: 40 };
    same(contentOf({ schema: "bodkin-calibration-4", left_out }).leftOut, [
        { of: "events", load: "1x2", predicted, why: null },
        { of: "events", load: "4x4", predicted: null, why: "no response" },
        { of: "the graph's results", load: "50:1, level 0", predicted, why: null },
        { of: "the graph's results", load: "50:1, level 1", predicted: { ...predicted, meanUs: 90 }, why: null },
    ]);
    same(contentOf({ schema: "bodkin-calibration-3" }).leftOut, []);
});

await test("web_unit_an_audit_entry_tells_why_or_whose_it_is", () => {
    same(glance({ caller: "x", why: "no such grant" }), "no such grant");
    same(glance({ ledgerAt: 7, name: "press.hall", made: [1, 2], body: { id: 3 } }), "name press.hall, ledgerAt 7, made 2, body");
    const long = glance({ file: "x".repeat(500) });
    expect(long.length === 72 && long.endsWith("…"), long);
});

await test("web_unit_buckets_become_wider_and_lose_nothing", () => {
    same(wider([[0, 2], [1, 3], [2, 1], [5, 4], [6, 1], [7, 1], [8, 5], [9, 6]], 1), [[0, 2], [1, 3], [2, 1], [8, 11], [16, 6]]);
    same(wider([[9_728, 400], [10_240, 700], [12_288, 99]], 2), [[11_586, 1100], [16_384, 99]]);
    const fine = Array.from({ length: 200 }, (_, at) => [Math.ceil(2 ** (at / 16)), 1 + at]).filter(([bound], at, all) => bound !== all[at - 1]?.[0]);
    const drawn = wider(fine, 2);
    const sum = (buckets) => buckets.reduce((all, [, count]) => all + count, 0);
    expect(sum(drawn) === sum(fine) && drawn.length <= 26, `${drawn.length} buckets`);
    expect(drawn.every(([bound], at) => at === 0 || bound > drawn[at - 1][0]), "bounds ascend");
});

await test("web_unit_words_are_found_in_any_order_and_case", () => {
    expect(hasWords("heat of Stove, display", "DISPLAY stove") && hasWords("heat", " ") && !hasWords("heat of stove", "heat lamp"), "words are not found as they stand");
});

await test("web_unit_a_column_with_a_unit_is_one_of_numbers_before_any_has_come", () => {
    const columns = ["rate", "name", "empty"].map((key) => ({ key, label: key, of: (row) => row[key], ...(key === "rate" ? { unit: "1/s" } : {}) }));
    same([...numbers([{ rate: null, name: "a", empty: null }], columns)], ["rate"]);
    same([...numbers([{ rate: 1, name: "a", empty: 2 }], columns)], ["rate", "empty"]);
});

const [API, PARTS] = ["../src/api.ts", "../../crates/host/src/live.rs"].map((path) => readFileSync(new URL(path, import.meta.url), "utf8"));

await test("web_unit_whatever_is_to_be_told_the_stream_tells", () => {
    // One path that it does not know, and the whole page has no stream.
    const asked = [...API.matchAll(/\b(?:whole|list)<.+>\("([^"]+)"\)/g)].map(([, path]) => path);
    const told = [...PARTS.matchAll(/part\("([^"]+)"/g)].map(([, path]) => path);
    expect(asked.length > 20 && told.length > 20, `${asked.length} asked, ${told.length} told`);
    same(asked.filter((path) => !told.includes(path)), []);
});

await test("web_unit_of_two_reports_the_conditions_are_told_that_differ", () => {
    const report = (conditions) => ({ experiment: "query", conditions });
    const [one, two] = [report({ cores: 2, cpu: "a", seed: 1, server: "own" }), report({ cores: 4, cpu: "a", seed: 2 })];
    same(differing(one, two), [["cores", "2", "4"], ["server", "own", "not told"]]);
    same(differing(one, one), []);
});

const ALERTS = readFileSync(new URL("../../docs/monitoring/alerts.yml", import.meta.url), "utf8");
/** What a node that does not answer or lead cannot say of itself. */
const TOLD_ELSEWHERE = ["BodkinDown", "BodkinNobodyLeads"];
const NOW_S = 694_000;
/** Of an alert: numbers with which it fires, and words that the overview then says. */
const FIRING = {
    BodkinNotProtected: [{ bodkin_pair_leads: 1, bodkin_pair_protected: 0 }, "the Backup is out"],
    BodkinPairNotWhole: [{ bodkin_pair_unreached: 1 }, "is unreachable"],
    BodkinDatabaseAway: [{ bodkin_database_connected: 0 }, "shared database is not reached"],
    BodkinDatabaseSetBack: [{ bodkin_database_setbacks_total: 1 }, "without commits that had been shown, 1 time"],
    BodkinNodeSilent: [{ bodkin_nodes_silent: 2 }, "2 nodes of this cloud are silent"],
    BodkinNodeEventsAway: [{ bodkin_node_events_connected: 0 }, "NATS is not reached"],
    BodkinCertificatesHeldUp: [{ bodkin_database_connected: 1, bodkin_certificate_exchange_age_seconds: 60 }, "have not gone from node to node for 1 min"],
    BodkinAuditNotCopied: [{ bodkin_database_connected: 1, bodkin_audit_copy_age_seconds: 11 }, "have not seen for 11 s what"],
    BodkinClockDiffers: [{ bodkin_database_clock_difference_seconds: 1.5 }, "by 1.5 s"],
    BodkinReleasesDiffer: [{ bodkin_nodes_other_release: 2 }, "another release"],
    BodkinCertificateEnds: [{ bodkin_certificates_end_timestamp_seconds: NOW_S + 3 * 86_400 }, "ends in 3 d"],
    BodkinGuaranteeSuspended: [{ bodkin_guarantee_suspended: 1 }, "not guaranteed"],
    BodkinBackupFar: [{ bodkin_backup_far: 1 }, "take longer to the Backup"],
    BodkinDeadlinesMissed: [{ bodkin_topic_late_total: 3 }, "3 events of real-time topics were late"],
    BodkinEventsLost: [{ bodkin_events_lost_total: 1234 }, "1,234 events were lost"],
    BodkinDeadLetters: [{ bodkin_dead_letters_total: 4 }, "4 pushed events were given up"],
    BodkinDatabaseSuspended: [{ bodkin_database_suspended: 1 }, "takes no change"],
    BodkinDiskFull: [{ bodkin_data_free_bytes: 5e6 }, "5 MB are free"],
    BodkinDiskFills: [{ bodkin_data_free_bytes: 5e8, bodkin_event_log_max_bytes: 1e9, bodkin_event_log_bytes: 1e8 }, "may take 900 MB more"],
    BodkinEventLogSuspended: [{ bodkin_event_log_suspended: 1 }, "keeps nothing"],
    BodkinAuditSuspended: [{ bodkin_audit_suspended: 1 }, "changes are refused"],
    BodkinFleetAway: [{ bodkin_fleet_connected: 0, bodkin_fleet_waiting_events: 7 }, "and 7 wait"],
    BodkinFleetStopped: [{ bodkin_fleet_connected: 1, bodkin_fleet_stopped_lanes: 1 }, "1 lane to the fleet's stream stands still"],
    BodkinFleetLost: [{ bodkin_fleet_lost_total: 8 }, "8 events were lost for the fleet"],
    BodkinFleetEmptied: [{ bodkin_fleet_emptied_total: 2 }, "was found purged or deleted 2 times"],
    BodkinFromFleetAway: [{ bodkin_from_fleet_connected: 0 }, "wait in its stream"],
    BodkinFromFleetLost: [{ bodkin_from_fleet_lost_total: 9 }, "9 messages of the fleet, at the most, were let go of"],
    BodkinTopicWaits: [{ bodkin_topics_waiting: 2 }, "2 topics reject events"],
    BodkinPairDuplicate: [{ bodkin_pair_duplicates: 1 }, "a second process claims"],
    BodkinPairRejected: [{ bodkin_pair_rejected: 2 }, "2 nodes of the pair refuse this one"],
    BodkinPairSettingsDiffer: [{ bodkin_pair_settings_differ: 1 }, "1 node of the pair runs with other settings"],
    BodkinPairLeaseRefused: [{ bodkin_pair_lease_refused: 1 }, "this node's lease"],
    BodkinPairRecordFailed: [{ bodkin_pair_record_failed: 1 }, "cannot write its record"],
    BodkinPairDiskFull: [{ bodkin_pair_disks_full: 1 }, "takes no new data"],
    BodkinPairCertificateRevoked: [{ bodkin_pair_certificate_revoked: 1 }, "takes no part in the pair"],
    BodkinPairCertificatesUnshared: [{ bodkin_pair_certificates_unshared: 1 }, "not known at the leader"],
    BodkinDatabaseSlow: [{ bodkin_database_connected: 1, bodkin_database_round_trip_seconds: 0.6 }, "take 600 ms"],
    BodkinEventLogLost: [{ bodkin_event_log_lost_total: 7 }, "has lost 7 events"],
    BodkinFleetRefused: [{ bodkin_fleet_connected: 1, bodkin_fleet_refused_lanes: 1 }, "does not accept the events of 1 lane"],
    BodkinFleetBehind: [{ bodkin_fleet_connected: 1, bodkin_fleet_lag_seconds: 400 }, "have waited for the fleet's stream"],
    BodkinPairFollowFailed: [{ bodkin_pair_follow_failed: 1 }, "cannot keep what the leader sends"],
    BodkinQuotaExceeded: [{ bodkin_quotas_exceeded: 1 }, "1 quota of clients"],
    BodkinRelayClientAtLimit: [{ bodkin_relay_clients_at_limit: 2 }, "2 clients at a limit"],
    BodkinGraphStandsStill: [{ bodkin_graphs_suspended: 2 }, "2 graphs stand still"],
    BodkinGraphLinkLosses: [{ bodkin_graph_links_exceeded_total: 2 }, "2 gaps of links of graphs"],
    BodkinGraphLinkDown: [{ bodkin_graph_links_down: 1 }, "1 link of graphs to other edges is down"],
};

await test("web_unit_whatever_an_alert_says_the_overview_says", () => {
    const alerts = [...ALERTS.matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
    expect(alerts.length > 20, `${alerts.length} alerts`);
    same(Object.keys(FIRING).filter((name) => !alerts.includes(name)), [], "alerts that are not there");
    for (const alert of alerts.filter((name) => !TOLD_ELSEWHERE.includes(name))) {
        const [numbers, words] = FIRING[alert] ?? [{}, "anything"];
        const told = troubles(numbers, NOW_S);
        expect(told.length === 1 && told[0].toLowerCase().includes(words.toLowerCase()), `${alert}: ${JSON.stringify(told)}`);
    }
});

await test("web_unit_what_is_as_it_should_be_or_not_told_is_no_trouble", () => {
    for (const { of, says } of TROUBLES) {
        const fits = Object.fromEntries(of.map((name) => [name, /_(connected|protected|free_bytes|end_timestamp_seconds)$/.test(name) ? 1e12 : 0]));
        expect(says(fits, NOW_S) === null, `${of} is a trouble as it should be: ${says(fits, NOW_S)}`);
        expect(says({}, NOW_S) === null, `${of} is a trouble although nothing is told of it`);
    }
    same(troubles({ bodkin_pair_leads: 1, bodkin_pair_protected: 1, bodkin_certificates_end_timestamp_seconds: 1e7 }, NOW_S), []);
    same(troubles({ bodkin_certificates_end_timestamp_seconds: 5 }, NOW_S).map((told) => told.includes("has ended")), [true]);
    const [first, second] = troubles({ bodkin_topic_late_total: 1, bodkin_guarantee_suspended: 1 }, NOW_S);
    expect(first.includes("not guaranteed") && second.includes("late"), "what is so now is told first");
});

await test("web_unit_hidden_characters_are_drawn_escaped", () => {
    same(visible("gnp.\u202Eexe\u202C"), "gnp.\\u202Eexe\\u202C");
    same(visible("a\u0000b\nc\u007F\u0085d\u200Fe\u2066f\u2028g\uFEFFh"), "a\\u0000b\\u000Ac\\u007F\\u0085d\\u200Fe\\u2066f\\u2028g\\uFEFFh");
    same(visible("TEMPÉRATURE 温度 حرارة 🌡️ a-b_c.d"), "TEMPÉRATURE 温度 حرارة 🌡️ a-b_c.d");
    same(drawn("  a\n\tb\u202E"), "  a\n\tb\\u202E");
    same(draw([[{ id: "a", name: "\u202Ea" }]], [], 60).boxes.map(({ name }) => name), ["\\u202Ea"]);
});

await test("web_unit_whatever_the_document_draws_is_escaped", () => {
    // As much of a document as the watch needs.
    class CharacterData {
        constructor(data) {
            this.data = data;
        }
    }
    class Element {
        constructor(attributes, childNodes) {
            Object.assign(this, { attributes, childNodes });
        }
        getAttribute = (name) => this.attributes[name] ?? null;
        setAttribute = (name, value) => (this.attributes[name] = value);
    }
    let mutate;
    class MutationObserver {
        constructor(seen) {
            mutate = seen;
        }
        observe() {}
    }
    Object.assign(globalThis, { CharacterData, Element, MutationObserver });
    const [before, after, changed] = [new CharacterData("\u202Ebefore"), new CharacterData("\u202Eafter"), new CharacterData("as it was")];
    const root = new Element({}, [before, changed]);
    watch(root);
    same(before.data, "\\u202Ebefore");
    const added = new Element({ title: "\u2066t", value: "\u2066v" }, [after]);
    mutate([{ type: "childList", addedNodes: [added] }]);
    same([after.data, added.attributes], ["\\u202Eafter", { title: "\\u2066t", value: "\u2066v" }]);
    changed.data = "\u0007";
    mutate([{ type: "characterData", target: changed }]);
    same(changed.data, "\\u0007");
});

finish();
