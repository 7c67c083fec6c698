/** Where things in columns are drawn, and the lines between them. */

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

/** A thing's box, by its upper left corner. */
export interface Box extends Thing {
    x: number;
    y: number;
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

export const BOX_WIDTH_PX = 240;
export const BOX_HEIGHT_PX = 22;
const ROW_PX = 26;
/** Between two columns, for the lines. */
const GAP_PX = 90;
const HEAD_PX = 24;
/** Characters that a box has room for. */
const NAME_MAX = 28;

/** A line from the right side of a box to the left side of another. */
const path = (from: Box, to: Box): string => {
    const [x1, y1, x2, y2] = [from.x + BOX_WIDTH_PX, from.y + BOX_HEIGHT_PX / 2, to.x, to.y + BOX_HEIGHT_PX / 2];
    const middle = (x1 + x2) / 2;
    return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
};

/** Draws the first `rows` things of each column, and the edges of which both ends are drawn. */
export const draw = (columns: readonly (readonly Thing[])[], edges: readonly Edge[], rows: number): Drawing => {
    const lefts = columns.map((_, index) => index * (BOX_WIDTH_PX + GAP_PX));
    const boxes = columns.flatMap((column, index) =>
        column.slice(0, rows).map((thing, row): Box => ({ ...thing, x: lefts[index] ?? 0, y: HEAD_PX + row * ROW_PX + (ROW_PX - BOX_HEIGHT_PX) / 2 })),
    );
    const byId = new Map(boxes.map((box) => [box.id, box]));
    const lines = edges.flatMap((edge): Line[] => {
        const [from, to] = [byId.get(edge.from), byId.get(edge.to)];
        return from && to ? [{ ...edge, d: path(from, to) }] : [];
    });
    const longest = Math.max(1, ...columns.map((column) => Math.min(column.length, rows)));
    return { width: columns.length * (BOX_WIDTH_PX + GAP_PX) - GAP_PX, height: HEAD_PX + ROW_PX * longest, lefts, boxes, lines };
};

/** A name as a box has room for it. */
export const cut = (name: string): string => (name.length > NAME_MAX ? `${name.slice(0, NAME_MAX - 1)}…` : name);
