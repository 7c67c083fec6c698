/** One stream of what has changed (`/api/v1/live`), for everything on the page that shows it. Where there is none, everything is asked for by itself. */

import { Refused } from "./answer";
import { REFUSED_MS_MAX } from "./backoff";
import { silence } from "./silence.svelte";
import { listen, openStream } from "./sse";

/** Milliseconds without a word after which the stream is dead: the server says something every 5 s. */
const SILENCE_MS_MAX = 12_000;
/** Milliseconds before a stream that has ended is opened again: doubled with each failure. */
const RETRY_MS_MIN = 1000;
const RETRY_MS_MAX = 15_000;
/** Milliseconds in which a page says what it wants, before a stream is opened. */
const GATHER_MS = 20;
/** Characters of a part, which has 8 MiB at the most, and what is around it. */
const CHARACTERS_MAX = 9 << 20;
/** What the server says of a part that is too long for the stream. */
const TOO_LONG = 413;

/** The newest answer of a path. */
export interface Part {
    status: number;
    body: unknown;
}

class Live {
    /** Who is told when a path's answer has changed. */
    readonly #wanted = new Map<string, Set<() => void>>();
    readonly #parts = new Map<string, Part>();
    /** The paths of the stream that is open. */
    #open: readonly string[] = [];
    #stop: AbortController | null = null;
    #timer = 0;

    constructor() {
        document.addEventListener("visibilitychange", () => this.#renew());
    }

    /** Calls `changed` when one of these answers has become another, and when they are told no more. What it gives ends that. */
    watch(paths: readonly string[], changed: () => void): () => void {
        for (const path of paths) this.#wanted.set(path, (this.#wanted.get(path) ?? new Set()).add(changed));
        if (paths.some((path) => !this.#open.includes(path))) this.#renew();
        return () => {
            for (const path of paths) {
                const watchers = this.#wanted.get(path);
                watchers?.delete(changed);
                if (watchers?.size === 0) {
                    this.#wanted.delete(path);
                    this.#parts.delete(path);
                }
            }
        };
    }

    /** Whether changes of all these are told just now. */
    tells(paths: readonly string[]): boolean {
        return paths.length > 0 && paths.every((path) => this.#parts.has(path));
    }

    /** The newest answer; none: it has to be asked for. */
    newest(path: string): Part | undefined {
        return this.#parts.get(path);
    }

    /** These are to be asked for once more, as after a change of one's own. */
    forget(paths: readonly string[]): void {
        for (const path of paths) this.#parts.delete(path);
    }

    /** An answer that was asked for counts until the stream tells another. */
    keep(path: string, body: unknown): void {
        if (this.#open.includes(path) && this.#wanted.has(path) && !this.#parts.has(path)) this.#parts.set(path, { status: 200, body });
    }

    /** Opens a stream of what is wanted, in the place of the one there is. */
    #renew(): void {
        clearTimeout(this.#timer);
        this.#timer = window.setTimeout(() => {
            this.#stop?.abort();
            this.#stop = new AbortController();
            this.#open = [];
            // While nobody looks nothing is told.
            if (document.hidden) this.#parts.clear();
            else if (this.#wanted.size > 0) void this.#follow([...this.#wanted.keys()], this.#stop.signal);
        }, GATHER_MS);
    }

    async #follow(paths: readonly string[], stopped: AbortSignal): Promise<void> {
        let retryMs = RETRY_MS_MIN;
        while (!stopped.aborted) {
            const late = new AbortController();
            let timer = 0;
            const wait = (): void => {
                clearTimeout(timer);
                timer = window.setTimeout(() => late.abort(), SILENCE_MS_MAX);
            };
            try {
                wait();
                const body = await openStream(`/api/v1/live?of=${encodeURIComponent(paths.join(","))}`, "", AbortSignal.any([stopped, late.signal]));
                this.#open = paths;
                await listen(
                    body,
                    ({ type, data }) => {
                        retryMs = RETRY_MS_MIN;
                        if (type === "part" && !stopped.aborted) this.#hear(JSON.parse(data) as Part & { path: string });
                    },
                    {
                        charactersMax: CHARACTERS_MAX,
                        came: () => {
                            silence.heard();
                            wait();
                        },
                    },
                );
            } catch (error) {
                // Each path says by itself why.
                if (error instanceof Refused && error.status < 500) retryMs = REFUSED_MS_MAX;
            } finally {
                clearTimeout(timer);
            }
            if (stopped.aborted) return;
            this.#lose();
            await new Promise((later) => setTimeout(later, retryMs));
            retryMs = Math.min(2 * retryMs, RETRY_MS_MAX);
        }
    }

    #hear({ path, status, body }: Part & { path: string }): void {
        if (!this.#wanted.has(path)) return;
        if (status === TOO_LONG) this.#parts.delete(path);
        else this.#parts.set(path, { status, body });
        this.#tell([path]);
    }

    /** The stream is gone: whoever has heard by it asks. */
    #lose(): void {
        const had = [...this.#parts.keys()];
        this.#open = [];
        this.#parts.clear();
        this.#tell(had);
    }

    #tell(paths: readonly string[]): void {
        const watchers = new Set(paths.flatMap((path) => [...(this.#wanted.get(path) ?? [])]));
        for (const changed of watchers) changed();
    }
}

export const live = new Live();
