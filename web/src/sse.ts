/** Reads server-sent events (WHATWG HTML, section 9.2) out of a stream of octets. */

import { refusal } from "./answer";

export interface Message {
    /** Empty where the stream named none. */
    type: string;
    data: string;
    id: string;
}

/** Characters of a line that may wait for its end. Bodkin's events are 64 KiB at the most. */
const CHARACTERS_MAX = 1 << 20;

/** An event stream's answer, whose body goes on for ever. */
export const openStream = async (url: string, lastEventId: string, stopped: AbortSignal): Promise<ReadableStream<Uint8Array>> => {
    const headers: Record<string, string> = lastEventId === "" ? {} : { "Last-Event-ID": lastEventId };
    const answer = await fetch(url, { headers, signal: stopped, credentials: "include", cache: "no-store" });
    if (!answer.ok || !answer.body) throw await refusal(answer);
    return answer.body;
};

interface Manner {
    /** Characters of a line that may wait for its end. */
    charactersMax?: number;
    /** Told that something has come, be it a part of a message. */
    came?: () => void;
}

/** Gives every message of a body to `hear`, until the body ends. */
export const listen = async (body: ReadableStream<Uint8Array>, hear: (message: Message) => void, { charactersMax = CHARACTERS_MAX, came }: Manner = {}): Promise<void> => {
    const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
    // Pieces of a line whose end has not come: they are joined once, when it has.
    let pieces: string[] = [];
    let waiting = 0;
    let type = "";
    let data: string[] = [];
    let id = "";
    const line = (text: string): void => {
        if (text === "") {
            if (data.length > 0) hear({ type, data: data.join("\n"), id });
            type = "";
            data = [];
            return;
        }
        const colon = text.indexOf(":");
        const field = colon === -1 ? text : text.slice(0, colon);
        const value = colon === -1 ? "" : text.slice(colon + 1).replace(/^ /, "");
        if (field === "event") type = value;
        else if (field === "data") data.push(value);
        else if (field === "id") id = value;
    };
    for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        came?.();
        const lines = value.split("\n");
        const rest = lines.pop() ?? "";
        if (lines.length > 0) {
            lines[0] = pieces.join("") + (lines[0] ?? "");
            pieces = [];
            waiting = 0;
        }
        pieces.push(rest);
        waiting += rest.length;
        if (waiting > charactersMax) throw new Error("a line of the stream does not end");
        for (const text of lines) line(text.replace(/\r$/, ""));
    }
};
