/** The live tail of an event type: what is heard of it, drawn seldom enough to stay fluent. */

import { Refused } from "./answer";
import { words } from "./feed.svelte";
import type { Event } from "./forms";
import { listen, openStream, type Message } from "./sse";

/** Events that are kept and shown: the newest. */
export const EVENTS_MAX = 500;
/** Milliseconds between two drawings. */
const DRAW_MS = 100;
/** Lines that a drawing may add: 250 a second. Nobody reads more, and more would not be fluent. What a drawing has not used a later one may, so that a burst is shown whole. */
const ADDED_MAX = 25;
/** Milliseconds before a stream that has ended is opened again, as the stream says. */
const RETRY_MS = 1000;

/** A line of the tail. */
export type Heard =
    | { kind: "event"; number: number; at: number; id: string; event: Event }
    /** What the stream says of itself: events that were lost, a guarantee that has changed. */
    | { kind: "notice"; number: number; at: number; text: string };

export type TailState = { kind: "stopped" } | { kind: "connecting" } | { kind: "live"; since: number } | { kind: "lost"; since: number; why: string };

/** What has come and is not drawn. */
interface Came {
    number: number;
    at: number;
    message: Message;
}

const isNotice = ({ type }: Message): boolean => type !== "" && type !== "message";
const notice = (message: Message): string => {
    if (message.type === "bodkin-lost") {
        const { lost } = JSON.parse(message.data) as { lost: number | null };
        return lost === null ? "Events were lost here; how many is not known." : `${lost} events were lost here: this listener was too slow.`;
    }
    return `${message.type}: ${message.data}`;
};

const drawn = ({ number, at, message }: Came): Heard =>
    isNotice(message)
        ? { kind: "notice", number, at, text: notice(message) }
        : { kind: "event", number, at, id: message.id, event: JSON.parse(message.data) as Event };

export class Tail {
    state = $state.raw<TailState>({ kind: "stopped" });
    /** Newest first. */
    lines = $state.raw<readonly Heard[]>([]);
    /** Events that have come since the start. */
    came = $state(0);
    isPaused = $state(false);
    /** Whether the stream is open, or will be opened again. */
    isFollowing = $state(false);

    #fresh: Came[] = [];
    #came = 0;
    #allowance = EVENTS_MAX;
    #stop: AbortController | null = null;

    /** Events that came from the oldest line to the newest. They are more than the lines where some were left out. */
    get span(): number {
        const [newest, oldest] = [this.lines[0], this.lines[this.lines.length - 1]];
        return newest && oldest ? newest.number - oldest.number + 1 : 0;
    }

    /** Begins anew, with another stream. */
    start(url: string): void {
        this.stop();
        this.#fresh = [];
        this.#came = 0;
        this.#allowance = EVENTS_MAX;
        this.lines = [];
        this.came = 0;
        this.isPaused = false;
        this.isFollowing = true;
        const stop = new AbortController();
        this.#stop = stop;
        const timer = setInterval(() => this.#draw(), DRAW_MS);
        stop.signal.addEventListener("abort", () => clearInterval(timer));
        void this.#follow(url, stop.signal);
    }

    stop(): void {
        this.#stop?.abort();
        this.#stop = null;
        this.isFollowing = false;
        this.#draw();
        this.state = { kind: "stopped" };
    }

    async #follow(url: string, stopped: AbortSignal): Promise<void> {
        let lastId = "";
        let lostSince: number | null = null;
        while (!stopped.aborted) {
            this.state = lostSince === null ? { kind: "connecting" } : this.state;
            let why = "the stream has ended";
            try {
                const body = await openStream(url, lastId, stopped);
                lostSince = null;
                this.state = { kind: "live", since: Date.now() };
                await listen(body, (message) => {
                    if (message.id !== "") lastId = message.id;
                    this.#hear(message);
                });
            } catch (error) {
                why = words(error);
                if (error instanceof Refused && error.status < 500 && !stopped.aborted) {
                    // Asking again would not change it.
                    this.stop();
                    this.state = { kind: "lost", since: Date.now(), why };
                    return;
                }
            }
            if (stopped.aborted) return;
            lostSince ??= Date.now();
            this.state = { kind: "lost", since: lostSince, why };
            await new Promise((later) => setTimeout(later, RETRY_MS));
        }
    }

    #hear(message: Message): void {
        this.#came += 1;
        this.#fresh.push({ number: this.#came, at: Date.now(), message });
        // Between two drawings no more is kept than is shown.
        if (this.#fresh.length > 2 * EVENTS_MAX) this.#fresh.splice(0, EVENTS_MAX);
    }

    #draw(): void {
        this.came = this.#came;
        this.#allowance = Math.min(EVENTS_MAX, this.#allowance + ADDED_MAX);
        if (this.isPaused || this.#fresh.length === 0) return;
        const first = this.#fresh.length - this.#allowance;
        // What the stream says of itself is never left out.
        const added = this.#fresh.filter(({ message }, index) => index >= first || isNotice(message));
        this.#allowance = Math.max(0, this.#allowance - added.length);
        this.lines = [...added.reverse().map(drawn), ...this.lines].slice(0, EVENTS_MAX);
        this.#fresh = [];
    }
}
