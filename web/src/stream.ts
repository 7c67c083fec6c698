/** What is told of a stream of NATS JetStream: by whom it is kept, and what comes from it. */

import { age, bytes, count, micros, NOTHING, some } from "./format";
import type { FleetLane, FromFleet, StreamTold } from "./fleet";

/** What its messages are told as, or that it has told nothing. */
export const sizeOf = (told: StreamTold | null, whose: string): string =>
    told === null ? "has said nothing of itself" : `${some(told.messages, "message", "messages")} of ${whose}, ${bytes(told.bytes)}`;

/** Its servers. */
export const keptBy = (told: StreamTold | null) => ({
    name: "Kept by",
    value: told === null ? NOTHING : some(told.replicas, "server", "servers"),
    hint: told === null ? "" : told.onDisk ? "on disk" : "in memory",
});

/** Connections that servers have greeted. */
export const greeted = (connections: number): string => `${some(connections, "connection", "connections")} since the start`;

/** How long ago something was, by the server's clock. */
export const ago = (ms: number | null, nowMs: number): string => (ms === null ? NOTHING : `${age(nowMs - ms)} ago`);

/** How long the oldest event of a lane has waited: how old those are that lie in the log and were not read yet is not at hand, and told as 0. */
export const waitsFor = ({ waiting, lagUs }: FleetLane): string => (waiting === 0 ? NOTHING : lagUs === 0 ? "not known yet" : micros(lagUs));

/** What comes from a stream. */
export const taken = ({ taken, waiting, heardMs, underWay, oldestMs, refused, lost }: FromFleet, nowMs: number) => [
    { name: "Taken", value: count(taken), hint: "events, since the start" },
    { name: "Last one", value: ago(heardMs, nowMs), hint: "when a message came" },
    { name: "Waiting", value: count(waiting), hint: "messages in the stream that have not come" },
    { name: "Under way", value: count(underWay), hint: oldestMs === null ? "into the event log" : `into the event log, the oldest came ${ago(oldestMs, nowMs)}` },
    { name: "Refused", value: count(refused), hint: "messages, since the start", bad: refused > 0 },
    { name: "Lost", value: count(lost), hint: "messages at the most, let go of before they came", bad: lost > 0 },
];
