/** What an entry of the audit log tells at a glance. */

/** Characters that are seen without opening it. */
const GLANCE_MAX = 72;

const part = ([name, value]: [string, unknown]): string => {
    if (Array.isArray(value)) return `${name} ${value.length}`;
    return typeof value === "object" ? name : `${name} ${String(value)}`;
};

/** Why something was denied is what is looked for; of others whose it is, then the rest: of lists how many there are. */
export const glance = (detail: object): string => {
    if ("why" in detail && typeof detail.why === "string") return detail.why;
    const [named, others] = [true, false].map((isName) => Object.entries(detail).filter(([name]) => (name === "name") === isName));
    const told = [...(named ?? []), ...(others ?? [])].map(part).join(", ");
    return told.length > GLANCE_MAX ? `${told.slice(0, GLANCE_MAX - 1)}…` : told;
};
