// The picture: points, regions, old and new boundaries, the margin band, the witness, the vector w.

import { Fields } from "./fields.js";
import { Frame, ticks } from "./frame.js";
import { CanvasPen, SvgPen, arrow, marker } from "./pen.js";
import { label, num, vec } from "./formatting.js";

/** @import { Field } from "./fields.js" */
/** @import { Pen, Style } from "./pen.js" */
/** @import { Run } from "./run.js" */

/**
 * @typedef {ReturnType<typeof theme>} Colours
 * @typedef {keyof Colours["views"]} ViewName
 * @typedef {{ t: number, views: string[], street: boolean, witness: boolean, upcoming?: number | null, cross?: number[] | null }} Shown
 */

export const VIEWS = [
  { name: "last", title: "last w", dash: [], width: 2.6 },
  { name: "averaged", title: "averaged", dash: [10, 5], width: 2.4 },
  { name: "voted", title: "voted", dash: [2, 4], width: 3 },
  { name: "pocket", title: "pocket", dash: [14, 4, 2, 4], width: 2.4 },
  { name: "margin", title: "max margin", dash: [7, 3, 2, 3], width: 2.4 },
];
const MOST_VOTERS = 5000;

export function theme() {
  const style = getComputedStyle(document.documentElement);
  const of = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  return {
    paper: of("--paper"),
    ink: of("--ink"),
    soft: of("--soft"),
    line: of("--line"),
    accent: of("--accent"),
    bad: of("--bad"),
    classes: [0, 1, 2, 3, 4, 5, 6].map((c) => of(`--class-${c}`)),
    views: { last: of("--ink"), averaged: of("--averaged"), voted: of("--voted"), pocket: of("--pocket"), margin: of("--margin") },
  };
}

/** The views that can be drawn for a run. @param {Run} run */
export function available(run) {
  const { doc } = run;
  /** @type {Record<string, boolean>} */
  const can = {
    last: true,
    averaged: true,
    voted: run.m <= MOST_VOTERS,
    pocket: doc.kept !== null,
    margin: doc.max_margin !== null,
  };
  return can;
}

export class Picture {
  /** @param {Run} run @param {number} width @param {number} height */
  constructor(run, width, height, fixed = /** @type {number[] | null} */ (null)) {
    this.run = run;
    this.frame = new Frame(run, width, height, fixed);
    this.fields = new Fields(run, this.frame);
    /** @type {{ key: string, canvas: HTMLCanvasElement } | null} */
    this._layer = null;
    /** @type {number[][]} where the arrow of w and its name are */
    this._wBoxes = [];
  }

  // Discard the cached points after one was moved.
  forget() {
    this._layer = null;
  }

  get radius() {
    const n = this.run.doc.x.length;
    return n <= 40 ? 7 : n <= 250 ? 5 : n <= 2500 ? 3.4 : 2.2;
  }

  /** The scores of a view after step t. @param {string} view @param {number} t */
  field(view, t) {
    const { run, fields } = this;
    if (view === "averaged") return fields.averaged(t);
    if (view === "voted") return fields.voted(t);
    if (view === "pocket") return fields.last(Math.min(run.doc.kept ?? 0, run.m));
    if (view === "margin" && run.doc.max_margin) return fields.ofWeights(run.doc.max_margin.w);
    return fields.last(run.mistakesAt(t));
  }

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {Shown} state
   * @param {number} ratio the pixels of the canvas for one of the picture
   * @param {number} below the height that is left free below the picture
   */
  onCanvas(canvas, state, ratio = Math.min(3, globalThis.devicePixelRatio || 1), below = 0) {
    const { width, height } = this.frame;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round((height + below) * ratio);
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.scale(ratio, ratio);
    const colours = theme();
    this.draw(new CanvasPen(context), state, colours, () => context.drawImage(this._points(ratio, colours), 0, 0, width, height));
  }

  /** @param {Shown} state */
  toSvg(state) {
    const pen = new SvgPen(this.frame.width, this.frame.height);
    this.draw(pen, state, theme(), () => this._drawPoints(pen, theme()));
    return pen.toString();
  }

  /** The points do not change between steps, so they are drawn once. @param {number} ratio @param {Colours} colours */
  _points(ratio, colours) {
    const key = `${ratio} ${colours.paper}`;
    if (this._layer?.key !== key) {
      const canvas = document.createElement("canvas");
      canvas.width = Math.round(this.frame.width * ratio);
      canvas.height = Math.round(this.frame.height * ratio);
      const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
      context.scale(ratio, ratio);
      this._drawPoints(new CanvasPen(context), colours);
      this._layer = { key, canvas };
    }
    return this._layer.canvas;
  }

  /** @param {Pen} pen @param {Colours} colours */
  _drawPoints(pen, colours) {
    const { run, frame, radius } = this;
    pen.clip(frame.inner());
    const inside = radius > 3;
    frame.points.forEach((point, i) => {
      const [x, y] = frame.toPixels(point);
      const colour = colours.classes[run.doc.y[i] % 7];
      const held = i >= run.doc.n_train;
      const style = held
        ? { fill: colours.paper, stroke: colour, width: inside ? 1.8 : 1 }
        : { fill: colour, stroke: colours.paper, width: inside ? 1.2 : 0.4 };
      const outline = marker(run.doc.y[i] % 7, x, y, radius);
      if (outline === null) pen.circle(x, y, radius, style);
      else pen.path([outline], style, true);
    });
    pen.unclip();
  }

  /** @param {Pen} pen @param {Shown} state @param {Colours} colours @param {() => void} points */
  draw(pen, state, colours, points) {
    const { frame } = this;
    const inner = frame.inner();
    pen.rect(0, 0, frame.width, frame.height, { fill: colours.paper });
    pen.clip(inner);
    const shown = state.views.filter((view) => available(this.run)[view]);
    const shading = shown.includes("last") || !shown.length ? "last" : shown[0];
    if (this.run.steps) this._regions(pen, this.field(shading, state.t), colours);
    pen.unclip();
    this._axes(pen, colours);
    pen.clip(inner);
    if (this.run.steps) this._boundaries(pen, state, shown, colours);
    pen.unclip();
    points();
    pen.clip(inner);
    this._marks(pen, state, colours);
    pen.unclip();
    this._names(pen, state, colours);
  }

  /** @param {Pen} pen @param {Field} field @param {Colours} colours */
  _regions(pen, field, colours) {
    const { fields, frame } = this;
    const opacity = 0.1;
    if (field.affine && field.affine.length === 1) {
      const [x0, x1, y0, y1] = frame.window;
      const corners = [[x0, y0], [x1, y0], [x1, y1], [x0, y1]];
      for (const side of [0, 1]) {
        const part = clipped(corners, field.affine[0], side ? 1 : -1).map((p) => frame.toPixels(p));
        if (part.length > 2) pen.path([part], { fill: colours.classes[side], opacity }, true);
      }
      return;
    }
    const winners = fields.winners(field);
    const { nx, ny } = fields;
    const [left, top] = frame.toPixels(fields.place(0));
    const [right, bottom] = frame.toPixels(fields.place(fields.size - 1));
    const [w, h] = [(right - left) / (nx - 1), (bottom - top) / (ny - 1)];
    const runs = colours.classes.map(() => /** @type {number[][][]} */ ([]));
    for (let row = 0; row < ny; row += 1) {
      for (let from = 0; from < nx; ) {
        const c = winners[row * nx + from];
        let to = from;
        while (to < nx && winners[row * nx + to] === c) to += 1;
        if (c >= 0) {
          const [x0, x1, y] = [left + (from - 0.5) * w, left + (to - 0.5) * w, top + (row - 0.5) * h];
          runs[c % 7].push([[x0, y], [x1, y], [x1, y + h], [x0, y + h]]);
        }
        from = to;
      }
    }
    runs.forEach((boxes, c) => boxes.length && pen.path(boxes, { fill: colours.classes[c], opacity }, true));
  }

  /** @param {Pen} pen @param {Colours} colours */
  _axes(pen, colours) {
    const { frame } = this;
    const inner = frame.inner();
    const [x0, x1, y0, y1] = frame.window;
    const bottom = inner.y + inner.height;
    const most = (/** @type {number} */ length, /** @type {number} */ each) => Math.max(3, Math.round(length / each));
    for (const value of ticks(x0, x1, most(inner.width, 64))) {
      const [x] = frame.toPixels([value, 0]);
      pen.path([[[x, inner.y], [x, bottom]]], { stroke: colours.line, width: value === 0 ? 1.4 : 0.6 });
      pen.text(num(value), x, bottom + 15, { size: 11.5, fill: colours.soft, align: "center" });
    }
    const flat = this.run.doc.plane.axes[1] === "";
    for (const value of flat ? [0] : ticks(y0, y1, most(inner.height, 48))) {
      const [, y] = frame.toPixels([0, value]);
      pen.path([[[inner.x, y], [inner.x + inner.width, y]]], { stroke: colours.line, width: value === 0 ? 1.4 : 0.6 });
      if (!flat) pen.text(num(value), inner.x - 7, y + 4, { size: 11.5, fill: colours.soft, align: "end" });
    }
    const [across, up] = this.run.doc.plane.axes;
    const style = { size: 12.5, fill: colours.soft, weight: 600, halo: colours.paper };
    pen.text(across, inner.x + inner.width, bottom + 30, { ...style, align: "end" });
    pen.text(up, inner.x + 6, inner.y + 14, style);
  }

  /** The margin band and its support vectors belong to the max-margin boundary, and to the end. @param {Shown} state */
  hasStreet(state) {
    const asked = state.views.includes("margin") || (state.t === this.run.steps && this.run.steps > 0);
    return asked && this.run.doc.max_margin !== null;
  }

  /** @param {Shown} state */
  _street(state) {
    return state.street && this.hasStreet(state);
  }

  /** @param {Pen} pen @param {number[][][]} lines @param {Style} style */
  _line(pen, lines, style) {
    pen.path(lines.map((line) => line.map((p) => this.frame.toPixels(p))), style);
  }

  /** @param {Pen} pen @param {Shown} state @param {string[]} shown @param {Colours} colours */
  _boundaries(pen, state, shown, colours) {
    const { run, fields } = this;
    if (this._street(state) && run.K === 1) {
      const street = this.field("margin", state.t);
      for (const level of [-1, 1]) {
        this._line(pen, fields.boundary(street, level), { stroke: colours.views.margin, width: 1.4, dash: [3, 4] });
      }
    }
    const now = run.at(state.t);
    if (shown.includes("last") && now.mistake && now.k > 0) {
      const old = fields.last(now.k - 1);
      this._line(pen, fields.boundary(old), { stroke: colours.soft, width: 2, dash: [6, 5], opacity: 0.85 });
    }
    for (const { name, dash, width } of VIEWS) {
      if (!shown.includes(name)) continue;
      this._line(pen, fields.boundary(this.field(name, state.t)), { stroke: colours.views[/** @type {ViewName} */ (name)], width, dash });
    }
  }

  /** @param {Pen} pen @param {Shown} state @param {Colours} colours */
  _marks(pen, state, colours) {
    const { run, frame, radius } = this;
    const place = (/** @type {number} */ i) => frame.toPixels(frame.points[i]);
    const { certificate, max_margin: street } = run.doc;
    if (street && this._street(state)) for (const i of street.support) {
      pen.circle(...place(i), radius + 5, { stroke: colours.views.margin, width: 1.8 });
    }
    if (state.witness && certificate) for (const { row, weight } of certificate.witness) {
      const [x, y] = place(row);
      pen.circle(x, y, radius + 5.5, { stroke: colours.bad, width: 2.6, dash: [4, 3] });
      const text = { size: 13, weight: 700, fill: colours.bad, halo: colours.paper };
      if (run.doc.x.length <= 12) pen.text(`λ = ${weight}`, x, this._weightBase(y), { ...text, align: "center" });
    }
    const now = run.at(state.t);
    if (now.example !== null) {
      const colour = now.mistake ? colours.bad : colours.accent;
      pen.circle(...place(now.example), radius + 9, { stroke: colour, width: 3 });
    }
    if (state.upcoming !== null && state.upcoming !== undefined) {
      pen.circle(...place(state.upcoming), radius + 12, { stroke: colours.ink, width: 2.4, dash: [5, 4] });
    }
    this._vector(pen, state, colours);
    if (state.cross) {
      const [x, y] = state.cross;
      for (const [stroke, width] of /** @type {[string, number][]} */ ([[colours.paper, 5], [colours.ink, 2]])) pen.path([[[x - 14, y], [x + 14, y]], [[x, y - 14], [x, y + 14]]], { stroke, width });
    }
  }

  /** The base line of the weight of a witness at height y: below the point, or above it where there is no room. @param {number} y */
  _weightBase(y) {
    const { y: top, height } = this.frame.inner();
    return y + this.radius + 26 <= top + height ? y + this.radius + 22 : y - this.radius - 12;
  }

  /** The vector w, drawn from the boundary into the positive side. @param {Pen} pen @param {Shown} state @param {Colours} colours */
  _vector(pen, state, colours) {
    const { run, frame, fields } = this;
    this._wBoxes = [];
    if (run.K !== 1 || !fields.straight || !state.views.includes("last")) return;
    const [a, b, c] = fields.affine(run.weights(run.mistakesAt(state.t)));
    const length = Math.hypot(a, b);
    if (length === 0) return;
    const [x0, x1, y0, y1] = frame.window;
    const through = run.doc.plane.kind !== "projection" && (!run.doc.bias || fields.augmented);
    const line = frame.cut([a, b, c]);
    let from = [0, 0];
    if (!through) {
      if (line === null) return;
      from = [(line[0][0] + line[1][0]) / 2, (line[0][1] + line[1][1]) / 2];
    }
    // perpendicular to the line on the screen, or with its true length if it starts at the origin and fits
    const start = frame.toPixels(from);
    const inner = frame.inner();
    const slope = [(a * (x1 - x0)) / inner.width, (-b * (y1 - y0)) / inner.height];
    const reach = 76 / Math.hypot(...slope);
    const fits = through && length < 0.8 * Math.min(x1, -x0, y1, -y0);
    const end = fits ? frame.toPixels([a, b]) : [start[0] + reach * slope[0], start[1] + reach * slope[1]];
    arrow(pen, start, end, { stroke: colours.ink, width: 2.4 });
    const away = [end[0] + (12 * (end[0] - start[0])) / Math.hypot(end[0] - start[0], end[1] - start[1]), end[1]];
    const base = away[1] + (end[1] > start[1] ? 16 : -4);
    this._wBoxes = [[away[0] - 8, base - 12, away[0] + 8, base + 4], [end[0] - 9, end[1] - 9, end[0] + 9, end[1] + 9]];
    pen.text("w", away[0], base, { size: 15, weight: 700, fill: colours.ink, halo: colours.paper, align: "center" });
  }

  /** Whether the old or the new straight boundary runs through a box of pixels. @param {Shown} state @returns {(box: number[]) => boolean} */
  _crossed(state) {
    const { run, frame, fields } = this;
    if (run.K !== 1 || !fields.straight || !state.views.includes("last")) return () => false;
    const now = run.at(state.t);
    const lines = (now.mistake ? [now.k - 1, now.k] : [now.k]).map((k) => fields.affine(run.weights(k)));
    return ([x0, y0, x1, y1]) => {
      const corners = [[x0, y0], [x1, y0], [x0, y1], [x1, y1]].map((corner) => frame.fromPixels(corner));
      return lines.some(([a, b, c]) => new Set(corners.map(([p, q]) => a * p + b * q + c > 0)).size > 1);
    };
  }

  /**
   * The coordinates and labels of a few points, placed where they cover nothing; those without room are left out.
   * @param {Pen} pen
   * @param {Shown} state
   * @param {Colours} colours
   */
  _names(pen, state, colours) {
    const { run, frame, radius } = this;
    if (run.doc.x.length > 12) return;
    const inner = frame.inner();
    const places = frame.points.map((point) => frame.toPixels(point));
    const taken = places.map(([x, y]) => [x - radius, y - radius, x + radius, y + radius]);
    taken.push(...this._wBoxes);
    const { example } = run.at(state.t);
    if (example !== null) taken[example] = [-10, -10, 10, 10].map((side, j) => places[example][j % 2] + side * (1 + radius / 10));
    const { upcoming } = state;
    if (upcoming !== null && upcoming !== undefined) taken[upcoming] = [-14, -14, 14, 14].map((side, j) => places[upcoming][j % 2] + side * (1 + radius / 14));
    const witness = state.witness && run.doc.certificate ? run.doc.certificate.witness : [];
    for (const { row } of witness) {
      const base = this._weightBase(places[row][1]);
      taken.push([places[row][0] - 30, base - 12, places[row][0] + 30, base + 4]);
    }
    const free = (/** @type {number[]} */ [x0, y0, x1, y1]) =>
      x0 >= inner.x && x1 <= inner.x + inner.width && y0 >= inner.y && y1 <= inner.y + inner.height &&
      !taken.some((box) => x0 < box[2] && box[0] < x1 && y0 < box[3] && box[1] < y1);
    const crossed = this._crossed(state);
    places.forEach(([x, y], i) => {
      const text = `${vec(run.doc.x[i])} ${label(run.classes, run.doc.y[i])}`;
      const ring = i === state.upcoming ? 15 : i === example ? 12 : 7;
      const [gap, wide] = [radius + ring, 6.9 * text.length];
      const spots = [[x + gap, y - gap + 2], [x - gap - wide, y - gap + 2], [x + gap, y + gap + 9], [x - gap - wide, y + gap + 9], [x - wide / 2, y - gap - 8], [x - wide / 2, y + gap + 19], [x + gap + 5, y + 4], [x - gap - 5 - wide, y + 4]];
      const room = spots.filter(([left, base]) => free([left, base - 11, left + wide, base + 3]));
      const spot = room.find(([left, base]) => !crossed([left, base - 11, left + wide, base + 3])) ?? room[0];
      if (!spot) return;
      taken.push([spot[0], spot[1] - 11, spot[0] + wide, spot[1] + 3]);
      pen.text(text, spot[0], spot[1], { size: 12.5, weight: 500, fill: colours.ink, halo: colours.paper });
    });
  }
}

/** The part of a polygon where side · (a·p + b·q + c) > 0. @param {number[][]} corners @param {number[]} line a, b and c @param {number} side */
function clipped(corners, [a, b, c], side) {
  const value = (/** @type {number[]} */ [p, q]) => side * (a * p + b * q + c);
  const out = /** @type {number[][]} */ ([]);
  corners.forEach((corner, i) => {
    const next = corners[(i + 1) % corners.length];
    const [here, there] = [value(corner), value(next)];
    if (here > 0) out.push(corner);
    if ((here > 0 && there < 0) || (here < 0 && there > 0)) {
      const share = here / (here - there);
      out.push([corner[0] + share * (next[0] - corner[0]), corner[1] + share * (next[1] - corner[1])]);
    }
  });
  return out;
}
