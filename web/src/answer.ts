/** How an answer that is no success reads. */

/** An answer that is no success. The message is the server's own words where it has said any. */
export class Refused extends Error {
    constructor(
        readonly status: number,
        message: string,
    ) {
        super(message);
    }
}

const member = (body: unknown, name: string): string | undefined => {
    const value = typeof body === "object" && body !== null ? (body as Record<string, unknown>)[name] : undefined;
    return typeof value === "string" && value !== "" ? value : undefined;
};

/** What an error's body says: a problem's detail (RFC 9457), a core system's message, or plain words. */
export const refused = (status: number, body: unknown, otherwise = String(status)): Refused => {
    const plain = typeof body === "string" && body.trim() !== "" ? body.trim() : undefined;
    return new Refused(status, member(body, "detail") ?? member(body, "errorMessage") ?? member(body, "title") ?? plain ?? otherwise);
};

/** The same of a whole answer. */
export const refusal = async (answer: Response): Promise<Refused> => {
    const text = await answer.text().catch(() => "");
    let body: unknown = text;
    try {
        body = JSON.parse(text);
    } catch {
        // Plain words, or a page.
        if (text.trimStart().startsWith("<")) body = "";
    }
    return refused(answer.status, body, `${answer.status} ${answer.statusText}`.trim());
};
