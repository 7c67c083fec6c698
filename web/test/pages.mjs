// Every page of the dashboard, and what axe finds in one.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

export const PAGES = ["overview", "map", "services", "systems", "authorization", "orchestration", "events", "broker", "graphs", "clouds", "models", "experiments", "audit", "api"];

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Findings below these do not fail. */
const SEVERE = ["serious", "critical"];

/** What of a page keeps somebody from using it, in words. */
export const severeFindings = async (page) => {
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    return violations.filter(({ impact }) => SEVERE.includes(impact)).map(({ id, nodes }) => `${id} at ${nodes[0].target} (${nodes[0].failureSummary.replaceAll("\n", " ")})`);
};
