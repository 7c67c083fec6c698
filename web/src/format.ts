/** How numbers and instants read. Every one has its unit. */

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const rounded = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** What stands where there is no value. */
export const NOTHING = "–";

export const count = (value: number): string => grouped.format(value);

/** So many of something, and what is said of one or of many. */
export const some = (value: number, one: string, many: string): string => `${count(value)} ${value === 1 ? one : many}`;

/** Three digits that count: 12.3, 1,230. */
export const digits = (value: number): string => (Math.abs(value) >= 1000 ? grouped.format(value) : rounded.format(value));

const scaled = (value: number, steps: readonly (readonly [number, string])[]): string => {
    const [size, unit] = steps.find(([size]) => Math.abs(value) >= size) ?? steps[steps.length - 1] ?? [1, ""];
    return `${digits(value / size)} ${unit}`;
};

export const bytes = (value: number): string =>
    scaled(value, [
        [1e9, "GB"],
        [1e6, "MB"],
        [1e3, "kB"],
        [1, "B"],
    ]);

/** A span in microseconds, in the unit in which it reads best. */
export const micros = (value: number | null): string =>
    value === null
        ? NOTHING
        : scaled(value, [
              [60e6, "min"],
              [1e6, "s"],
              [1e3, "ms"],
              [1, "µs"],
          ]);

/** A span in seconds. */
export const seconds = (value: number): string =>
    scaled(value, [
        [86_400, "d"],
        [3600, "h"],
        [60, "min"],
        [1, "s"],
    ]);

/** What is left until an instant, or how long ago it was. */
export const until = (end: string, nowMs: number): string => {
    const leftS = Math.round((new Date(end).getTime() - nowMs) / 1000);
    return leftS < 0 ? `${seconds(-leftS)} ago` : `in ${seconds(leftS)}`;
};

/** How long ago something was, in milliseconds. */
export const age = (ms: number): string => (ms < 10_000 ? `${(Math.max(ms, 0) / 1000).toFixed(1)} s` : seconds(Math.round(ms / 1000)));

const two = (value: number): string => String(value).padStart(2, "0");

/** The time of day in the browser's time zone. */
export const time = (at: Date): string => `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;

/** The date and the time of day in the browser's time zone. */
export const dated = (text: string): string => {
    const at = new Date(text);
    return Number.isNaN(at.getTime()) ? text : `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${time(at)}`;
};

/** An instant in the browser's time zone: the time of today, else the date in front of it. */
export const instant = (text: string | null | undefined): string => {
    if (!text) return NOTHING;
    const at = new Date(text);
    const isToday = at.toDateString() === new Date().toDateString();
    return isToday ? time(at) : dated(text);
};

export const endpoint = (system: { address: string; port: number }): string => `${system.address}:${system.port}`;
