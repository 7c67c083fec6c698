/** Where things in columns are drawn, and the lines between them. */

import { visible } from "./visible";

export interface Thing {
    /** Once in the drawing. */
    id: string;
    name: string;
}

export interface Edge {
    /** Ids of things. */
    from: string;
    to: string;
}

/** A thing's box, by its upper left corner; as wide as all of its column. */
export interface Box extends Thing {
    x: number;
    y: number;
    width: number;
}

/** An edge as the path of an SVG has it. */
export interface Line extends Edge {
    d: string;
}

export interface Drawing {
    width: number;
    height: number;
    /** Where each column begins. */
    lefts: readonly number[];
    boxes: readonly Box[];
    lines: readonly Line[];
}

export const BOX_HEIGHT_PX = 22;
/** Between a box's side and its name. */
export const INSET_PX = 8;
/** Of a letter, as a broad font has it (DejaVu Sans, 13 px). */
const [NARROW_PX, SMALL_PX, CAPITAL_PX, WIDE_PX] = [5.2, 8.4, 9.4, 13];
const [NARROW, WIDE] = ["fijlrtI.,:;'/()- ", "mwMW"];
const BOX_WIDTH_PX_MIN = 100;
const ROW_PX = 26;
/** Between two columns, for the lines. */
const GAP_PX = 70;
const HEAD_PX = 24;
/** Characters that a box has room for. */
const NAME_MAX = 44;

/**
 * The columns in an order in which fewer lines cross: each thing at the mean place of those in front of it that lead to it, in whichever column they are. The first column stays as it is, and behind
 * those that something leads to stand the others, as they stood.
 */
export const untangled = (columns: readonly (readonly Thing[])[], edges: readonly Edge[]): readonly (readonly Thing[])[] => {
    const leads = new Map<string, string[]>();
    for (const { from, to } of edges) leads.set(to, [...(leads.get(to) ?? []), from]);
    const places = new Map<string, number>();
    const placeOf = ({ id }: Thing): number => {
        const known = (leads.get(id) ?? []).flatMap((from) => places.get(from) ?? []);
        return known.length === 0 ? Infinity : known.reduce((sum, place) => sum + place, 0) / known.length;
    };
    return columns.map((column, index) => {
        const wanted = new Map(column.map((thing) => [thing.id, placeOf(thing)]));
        const at = ({ id }: Thing): number => wanted.get(id) ?? Infinity;
        const sorted = index === 0 ? column : [...column].sort((a, b) => (at(a) === at(b) ? 0 : at(a) - at(b)));
        sorted.forEach(({ id }, row) => places.set(id, row));
        return sorted;
    });
};

/** A name as a box has room for it. */
export const cut = (name: string): string => (name.length > NAME_MAX ? `${name.slice(0, NAME_MAX - 1)}…` : name);

const letterPx = (letter: string): number =>
    NARROW.includes(letter) ? NARROW_PX : WIDE.includes(letter) ? WIDE_PX : letter === letter.toLowerCase() ? SMALL_PX : CAPITAL_PX;

/** How broad a name is at the most, in pixels. */
const breadth = (name: string): number => Math.ceil([...name].reduce((sum, letter) => sum + letterPx(letter), 0));

/** A line from the right side of a box to the left side of another. */
const path = (from: Box, to: Box): string => {
    const [x1, y1, x2, y2] = [from.x + from.width, from.y + BOX_HEIGHT_PX / 2, to.x, to.y + BOX_HEIGHT_PX / 2];
    const middle = (x1 + x2) / 2;
    return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
};

/** Draws the first `rows` things of each column, and the edges of which both ends are drawn. */
export const draw = (columns: readonly (readonly Thing[])[], edges: readonly Edge[], rows: number): Drawing => {
    const drawn = untangled(columns, edges).map((column) => column.slice(0, rows).map((thing) => ({ ...thing, name: visible(thing.name) })));
    const widths = drawn.map((column) => Math.max(BOX_WIDTH_PX_MIN, ...column.map(({ name }) => 2 * INSET_PX + breadth(cut(name)))));
    const lefts = widths.map((_, index) => widths.slice(0, index).reduce((sum, width) => sum + width + GAP_PX, 0));
    const boxes = drawn.flatMap((column, index) =>
        column.map((thing, row): Box => ({ ...thing, x: lefts[index] ?? 0, y: HEAD_PX + row * ROW_PX + (ROW_PX - BOX_HEIGHT_PX) / 2, width: widths[index] ?? BOX_WIDTH_PX_MIN })),
    );
    const byId = new Map(boxes.map((box) => [box.id, box]));
    const lines = edges.flatMap((edge): Line[] => {
        const [from, to] = [byId.get(edge.from), byId.get(edge.to)];
        return from && to ? [{ ...edge, d: path(from, to) }] : [];
    });
    const longest = Math.max(1, ...columns.map((column) => Math.min(column.length, rows)));
    return { width: (lefts.at(-1) ?? 0) + (widths.at(-1) ?? BOX_WIDTH_PX_MIN), height: HEAD_PX + ROW_PX * longest, lefts, boxes, lines };
};

