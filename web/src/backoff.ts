/** When somebody who was refused asks again. */

/** Milliseconds between two questions at the most where the answer is that the caller may not ask: each is told in the audit log. */
export const REFUSED_MS_MAX = 60_000;

/** Milliseconds until it is asked again. Who was refused waits for twice as long each time: asking again does not change it, another certificate or a rule may. */
export const waitMs = (periodMs: number, refusals: number): number => Math.max(periodMs, Math.min(periodMs * 2 ** refusals, REFUSED_MS_MAX));
