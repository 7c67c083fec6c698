// Every page of the dashboard, what axe finds in one, and where its links lead.

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

/** Where the links of a page's content lead. */
export const linksOf = (page) => page.locator("main a[href]").evaluateAll((links) => links.map(({ href }) => href));

/** Each of these is answered 200, and with a document of its kind. */
export const allAnswer = async (request, places) => {
    for (const place of places) {
        const answer = await request.get(place);
        if (answer.status() !== 200) throw new Error(`${place} is answered ${answer.status()}: ${await answer.text()}`);
        const told = place.endsWith(".json") ? await answer.json() : {};
        if (place.endsWith("api.json") && !(told.openapi ?? told.asyncapi)) throw new Error(`${place} is no document of an API`);
    }
};
