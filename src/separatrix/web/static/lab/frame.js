// The coordinates of the picture: examples to points of the plane, points of the plane to pixels.

/** @import { Run } from "./run.js" */

export class Frame {
  /** @param {Run} run @param {number} width @param {number} height */
  constructor(run, width, height, fixed = /** @type {number[] | null} */ (null)) {
    this.run = run;
    this.width = width;
    this.height = height;
    this.margin = { left: 44, right: 14, top: 14, bottom: 34 };
    this.points = run.doc.x.map((x) => this.project(x));
    this.window = fixed ?? this._fitted();
    this._widen();
    if (fixed && !this._hasAll()) {
      const fitted = this._fitted(); // a picture of another shape shows less beside the fixed part
      this.window = fixed.map((value, j) => (j % 2 ? Math.max(value, fitted[j]) : Math.min(value, fitted[j])));
      this._widen();
    }
  }

  _hasAll() {
    const [x0, x1, y0, y1] = this.window;
    return this.points.every(([p, q]) => p >= x0 && p <= x1 && q >= y0 && q <= y1);
  }

  /** @param {number[]} x */
  project(x) {
    const { kind, origin, across } = this.run.doc.plane;
    if (kind === "augmented") return [x[0], 1];
    return across.map((direction) => direction.reduce((sum, value, j) => sum + value * (x[j] - origin[j]), 0));
  }

  /** The example at a point of the plane. @param {number[]} point */
  lift([p, q]) {
    const { origin, across } = this.run.doc.plane;
    return origin.map((value, j) => value + p * across[0][j] + q * across[1][j]);
  }

  _fitted() {
    let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const [p, q] of this.points) {
      [x0, x1] = [Math.min(x0, p), Math.max(x1, p)];
      [y0, y1] = [Math.min(y0, q), Math.max(y1, q)];
    }
    const { plane, bias } = this.run.doc;
    if (plane.kind === "augmented" || (plane.kind === "features" && !bias)) {
      [x0, x1, y0, y1] = [Math.min(x0, 0), Math.max(x1, 0), Math.min(y0, 0), Math.max(y1, 0)];
    }
    const side = Math.max(x1 - x0, y1 - y0) || 2;
    const [dx, dy] = this._apart(x1 - x0, y1 - y0) ? [x1 - x0, y1 - y0] : [side, side];
    return [x0 - 0.14 * dx, x1 + 0.14 * dx, y0 - 0.14 * dy, y1 + 0.14 * dy];
  }

  /** Whether width and height differ so much that each axis needs its own scale. @param {number} w @param {number} h */
  _apart(w, h) {
    return w > 0 && h > 0 && Math.max(w / h, h / w) > 5;
  }

  // Otherwise one unit has the same length on both axes.
  _widen() {
    const inner = this.inner();
    const [x0, x1, y0, y1] = this.window;
    const [w, h] = [x1 - x0, y1 - y0];
    if (this._apart(w, h)) return;
    const scale = Math.max(w / inner.width, h / inner.height);
    const [dx, dy] = [(scale * inner.width - w) / 2, (scale * inner.height - h) / 2];
    this.window = [x0 - dx, x1 + dx, y0 - dy, y1 + dy];
  }

  inner() {
    const { left, right, top, bottom } = this.margin;
    return { x: left, y: top, width: this.width - left - right, height: this.height - top - bottom };
  }

  /** @param {number[]} point @returns {[number, number]} */
  toPixels([p, q]) {
    const { x, y, width, height } = this.inner();
    const [x0, x1, y0, y1] = this.window;
    return [x + ((p - x0) / (x1 - x0)) * width, y + ((y1 - q) / (y1 - y0)) * height];
  }

  /** @param {number[]} pixel */
  fromPixels([px, py]) {
    const { x, y, width, height } = this.inner();
    const [x0, x1, y0, y1] = this.window;
    return [x0 + ((px - x) / width) * (x1 - x0), y1 - ((py - y) / height) * (y1 - y0)];
  }

  /** The line a·p + b·q + c = level where it crosses the window, or null. @param {number[]} line a, b and c */
  cut([a, b, c], level = 0) {
    const [x0, x1, y0, y1] = this.window;
    const ends = /** @type {number[][]} */ ([]);
    const add = (/** @type {number} */ p, /** @type {number} */ q) => {
      if (!ends.some(([fp, fq]) => Math.abs(fp - p) + Math.abs(fq - q) < 1e-12 * (x1 - x0))) ends.push([p, q]);
    };
    if (b !== 0) for (const p of [x0, x1]) {
      const q = (level - c - a * p) / b;
      if (q >= y0 && q <= y1) add(p, q);
    }
    if (a !== 0) for (const q of [y0, y1]) {
      const p = (level - c - b * q) / a;
      if (p >= x0 && p <= x1) add(p, q);
    }
    return ends.length >= 2 ? ends.slice(0, 2) : null;
  }

  /** The index of the example nearest to a pixel, or null if none is near. @param {number} px @param {number} py */
  pick(px, py, reach = 14) {
    let best = /** @type {number | null} */ (null);
    let nearest = reach * reach;
    this.points.forEach((point, i) => {
      const [x, y] = this.toPixels(point);
      const distance = (x - px) ** 2 + (y - py) ** 2;
      if (distance < nearest) [best, nearest] = [i, distance];
    });
    return best;
  }
}

/** Round numbers from low to high: about `most`, and at least two. @param {number} low @param {number} high */
export function ticks(low, high, most = 7) {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const steps = [0.2, 0.5, 1, 2, 5, 10].map((factor) => factor * power);
  for (let s = steps.findIndex((step) => step >= rough); ; s -= 1) {
    const step = steps[s] ?? 10 * power;
    const first = Math.ceil(low / step); // far from 0, first + 1 may be first: so the ticks are counted
    const out = /** @type {number[]} */ ([]);
    for (let n = 0; n <= 10 * most && (first + n) * step <= high; n += 1) {
      const tick = Number(((first + n) * step).toPrecision(12));
      if (tick !== out.at(-1)) out.push(tick);
    }
    if (out.length > 1 || s <= 0) return out;
  }
}
