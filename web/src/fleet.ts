/** Answers that tell of streams of NATS JetStream: a fleet's, and that between the nodes of one cloud. */

import type { Ages } from "./forms";

/** What a stream of NATS JetStream says of itself. */
export interface StreamTold {
    /** Servers that have it. */
    replicas: number;
    onDisk: boolean;
    messages: number;
    bytes: number;
}

/** Events between the nodes of one cloud, by a stream that keeps them; counts are since the start. */
export interface NodeEvents {
    stream: string;
    /** Whether events go to the other nodes, and come from them. */
    connected: boolean;
    server: string | null;
    /** Why nothing is handed on, or what a server has refused last. */
    trouble: string | null;
    told: StreamTold | null;
    /** What was accepted here. */
    handedOn: FleetLane[];
    /** What other nodes have handed on. */
    taken: FromFleet;
}

/** What is forwarded to a stream of NATS JetStream; counts are since the start. */
export interface Fleet {
    /** This edge's name there. */
    edge: string;
    stream: string;
    /** An edge may only take: until a lane names an event type, or a topic is marked. */
    forwards: boolean;
    connected: boolean;
    server: string | null;
    connections: number;
    /** Events a second that what waits is read with beside live ones; `null`: as fast as it goes. */
    pacedPerS: number | null;
    /** Why nothing is forwarded, or what a server has refused last. */
    trouble: string | null;
    /** What the stream said of itself last. */
    told: StreamTold | null;
    lanes: FleetLane[];
    /** What comes from the fleet; not there where nothing does. */
    fromFleet?: FromFleet;
}

/** Events that come from a stream of the fleet and are published here. */
export interface FromFleet {
    stream: string;
    consumer: string;
    connected: boolean;
    server: string | null;
    connections: number;
    /** Why nothing comes, or what a server has refused last. */
    trouble: string | null;
    position: number;
    taken: number;
    repeated: number;
    /** Messages for all edges that are not for this one. */
    passedOver: number;
    refused: number;
    lastRefused: string | null;
    /** At the most. */
    lost: number;
    /** On their way into the event log. */
    underWay: number;
    /** When the oldest of them came. */
    oldestMs: number | null;
    /** In the stream, and not come. */
    waiting: number;
    /** When the last one came. */
    heardMs: number | null;
}

/** An order of events that goes into one subject of the stream. */
export interface FleetLane {
    name: string;
    subject: string;
    epoch: number;
    position: number;
    stored: number;
    batches: number;
    repeated: number;
    waiting: number;
    /** How old the oldest one is that waits. */
    lagUs: number;
    lost: number;
    lostByStream: number;
    /** The stream had nothing of it any more, which had had everything up to this position. */
    emptiedThrough: number | null;
    /** When that was seen last. */
    emptiedMs: number | null;
    /** Times that it was, by none of the stream's limits. */
    emptied: number;
    /** When the stream acknowledged them; `null`: it has acknowledged nothing since the start. */
    age: Ages | null;
    /** Until somebody does something. */
    stopped: boolean;
    trouble: string | null;
}
