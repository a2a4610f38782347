// The editor of points: click to add, drag to move, relabel, delete, undo. The points become the data.

import { h, put } from "./dom.js";
import { label } from "./formatting.js";

/** @import { Point, RunDocument } from "./engine/types.js" */
/** @import { Viewer } from "./viewer.js" */

export const BLANK_WINDOW = [-5, 5, -5, 5];
const MOST_EDITED = 500;

export class Editor {
  /**
   * @param {Viewer} viewer
   * @param {{ onPoints: (points: Point[]) => void, onStart: (points: Point[], doc: RunDocument) => void }} listeners
   */
  constructor(viewer, { onPoints, onStart }) {
    this.viewer = viewer;
    this.onPoints = onPoints;
    this.onStart = onStart;
    /** @type {Point[] | null} the points that are edited; null if the data were not drawn */
    this.points = null;
    /** @type {Point[][]} */
    this.past = [];
    /** @type {RunDocument | null} */
    this.doc = null;
    /** @type {{ i: number, from: number[] } | null} */
    this.dragged = null;
    /** @type {number[] | null} the pixel that the arrow keys have moved to */
    this.cross = null;
    /** @type {number | null} the point that Enter has picked up */
    this.held = null;
    this.names = ["-1", "1"];
    this.tool = "1";
    const { canvas } = viewer;
    canvas.addEventListener("keydown", (event) => this._key(event));
    canvas.addEventListener("blur", () => this._aim(null));
    canvas.addEventListener("pointerdown", (event) => this._down(event));
    canvas.addEventListener("pointermove", (event) => this._move(event));
    canvas.addEventListener("pointerup", (event) => this._up(event));
    canvas.addEventListener("pointercancel", () => { this.dragged = null; });
    document.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && this.points && !(/** @type {Element} */ (event.target).matches("textarea, input:not([type=radio], [type=checkbox], [type=range])"))) {
        event.preventDefault();
        this.undo();
      }
    });
  }

  /** Edit the given points; null if the data were not drawn. @param {Point[] | null} points @param {RunDocument} doc */
  take(points, doc) {
    this.points = points;
    this.doc = doc;
    if (points) {
      for (const [, , name] of points) if (!this.names.includes(name)) this.names.push(name);
    } else this.past = [];
    this.viewer.setEditing(points !== null);
    this.show();
  }

  /** @param {Point[]} points @param {string[]} names @param {number[] | null} window */
  begin(points, names, window) {
    this.past = [];
    this.names = names.length > 1 ? names : ["-1", "1"];
    this.tool = this.names[this.names.length - 1];
    this.viewer.window = window;
    this.points = points;
  }

  show() {
    const { tools } = this.viewer;
    const focused = tools.contains(document.activeElement) ? document.activeElement?.id : undefined;
    if (!this.points) {
      const editable = this.doc && this.doc.plane.kind === "features" && this.doc.features.length === 2 && this.doc.x.length <= MOST_EDITED;
      put(tools, editable ? h("button", { type: "button", id: "edit", onclick: () => this._copy() }, "Edit these points") : null);
      return;
    }
    const numbers = this.names.map(Number);
    const classes = numbers.every(Number.isInteger) ? numbers : this.names;
    const drawn = this.doc?.classes.map(String) ?? []; // a class has the colour of its points; one without points has none
    const colour = (/** @type {string} */ name) => (drawn.includes(name) ? `c${drawn.indexOf(name) % 7}` : "");
    const radio = (/** @type {string} */ value, /** @type {string} */ text, kind = "") => h("label", { class: `tool ${kind}` },
      h("input", { type: "radio", name: "tool", value, checked: this.tool === value, onchange: () => { this.tool = value; } }), h("span", null, text));
    put(tools, h("div", { class: "tools", role: "group", "aria-label": "Drawing" },
      this.names.map((name, c) => radio(name, `add ${label(classes, c)}`, colour(name))),
      this.names.length < 6 ? h("button", { type: "button", id: "add-class", onclick: () => this._addClass() }, "+ class") : null,
      radio("move", "move"), radio("relabel", "relabel"), radio("delete", "delete"),
      h("button", { type: "button", id: "undo", disabled: !this.past.length, title: "Undo (Ctrl+Z)", onclick: () => this.undo() }, "Undo"),
      h("button", { type: "button", id: "clear", disabled: !this.points.length, onclick: () => this._change([]) }, "Clear")));
    if (focused === undefined) return;
    const same = focused && tools.querySelector(`#${focused}:enabled`);
    /** @type {HTMLElement | null} */ (same || tools.querySelector("input:checked"))?.focus();
  }

  _copy() {
    const { doc } = this;
    if (!doc) return;
    const names = doc.classes.map(String);
    const points = doc.x.map(([x, y], i) => /** @type {Point} */ ([x, y, names[doc.y[i]]]));
    this.begin(points, names, this.viewer.picture.frame.window);
    this.onStart(points, doc);
  }

  _addClass() {
    let next = 2;
    while (this.names.includes(String(next))) next += 1;
    this.names = [...this.names, String(next)];
    this.tool = String(next);
    this.show();
  }

  /** @param {Point[]} points */
  _change(points) {
    this.past.push(this.points ?? []);
    this.points = points;
    this.show();
    this.onPoints(points);
  }

  undo() {
    const before = this.past.pop();
    if (!before) return;
    this.points = before;
    this.show();
    this.onPoints(before);
  }

  /** @param {PointerEvent} event */
  _pixel(event) {
    const box = this.viewer.canvas.getBoundingClientRect();
    const scale = this.viewer.picture.frame.width / box.width; // of a lecture's enlarged picture
    return [scale * (event.clientX - box.left), scale * (event.clientY - box.top)];
  }

  /** The coordinates of a pixel, rounded to about two digits. @param {number[]} pixel */
  _rounded(pixel) {
    const { frame } = this.viewer.picture;
    const [x0, x1] = frame.window;
    const digits = Math.min(100, Math.max(0, 2 - Math.floor(Math.log10(x1 - x0))));
    return frame.fromPixels(pixel).map((/** @type {number} */ value) => Number(value.toFixed(digits)));
  }

  /**
   * Use the chosen tool at a pixel.
   * @param {number[]} pixel
   * @returns {number | null} the point there, if the tool leaves it to be moved
   */
  _use(pixel) {
    /** @type {Point[]} */
    const points = this.points ?? [];
    const i = points.length ? this.viewer.picture.frame.pick(pixel[0], pixel[1]) : null;
    if (i === null) {
      const [x, y] = this._rounded(pixel);
      if (this.names.includes(this.tool)) this._change([...points, [x, y, this.tool]]);
      return null;
    }
    if (this.tool === "delete") this._change(points.filter((_, j) => j !== i));
    else if (this.tool === "relabel") {
      const [x, y, name] = points[i];
      const next = this.names[(this.names.indexOf(name) + 1) % this.names.length];
      this._change(points.map((point, j) => (j === i ? [x, y, next] : point)));
    } else return i;
    return null;
  }

  /** Move a point to a pixel. @param {number} i @param {number[]} pixel */
  _drop(i, pixel) {
    const [x, y] = this._rounded(pixel);
    this._change((this.points ?? []).map((point, j) => (j === i ? [x, y, point[2]] : point)));
  }

  /** The arrow keys move a cross over the picture, Enter uses the tool there: all drawing without a pointer. @param {KeyboardEvent} event */
  _key(event) {
    if (!this.points || event.ctrlKey || event.metaKey || event.altKey) return;
    const inner = this.viewer.picture.frame.inner();
    const far = event.shiftKey ? 2 : 12;
    /** @type {Record<string, number[]>} */
    const moves = { ArrowLeft: [-far, 0], ArrowRight: [far, 0], ArrowUp: [0, -far], ArrowDown: [0, far] };
    const [x, y] = this.cross ?? [inner.x + inner.width / 2, inner.y + inner.height / 2];
    if (moves[event.key]) {
      const [dx, dy] = moves[event.key];
      this._aim([Math.max(inner.x, Math.min(inner.x + inner.width, x + dx)), Math.max(inner.y, Math.min(inner.y + inner.height, y + dy))]);
    } else if (event.key === "Enter") {
      this._aim([x, y]);
      if (this.held !== null) this._drop(this.held, [x, y]);
      this.held = this.held === null ? this._use([x, y]) : null;
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number[] | null} pixel where the cross is shown */
  _aim(pixel) {
    if (!pixel) this.held = null;
    this.cross = pixel;
    this.viewer.showCross(pixel, pixel ? `cross at (${this._rounded(pixel).join(", ")})${this.held === null ? "" : ", with a point"}` : "");
  }

  /** @param {PointerEvent} event */
  _down(event) {
    if (!this.points || event.button !== 0) return;
    const pixel = this._pixel(event);
    const i = this._use(pixel);
    if (i === null) return;
    this.dragged = { i, from: pixel };
    this.viewer.canvas.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  _move(event) {
    if (!this.dragged) return;
    const point = this._rounded(this._pixel(event));
    const { picture } = this.viewer;
    picture.frame.points[this.dragged.i] = point;
    picture.run.doc.x[this.dragged.i] = point;
    picture.forget();
    this.viewer.render();
  }

  /** @param {PointerEvent} event */
  _up(event) {
    if (!this.dragged || !this.points) return;
    const { i, from } = this.dragged;
    this.dragged = null;
    const pixel = this._pixel(event);
    if (Math.hypot(pixel[0] - from[0], pixel[1] - from[1]) < 3) return;
    this._drop(i, pixel);
  }
}

/** The document of points that cannot be learned from yet. @param {Point[]} points @param {string[]} names */
export function untrained(points, names) {
  const used = names.length > 1 ? names : ["-1", "1"];
  const numeric = used.every((name) => String(parseInt(name, 10)) === name);
  const classes = numeric ? used.map(Number) : used;
  return {
    name: "drawn points", recipe: { bias: true, tie: "mistake" }, snippet: "", features: ["x₁", "x₂"], classes, n_train: points.length,
    x: points.map(([x, y]) => [x, y]), y: points.map(([, , name]) => used.indexOf(name)), map: { kind: "none", names: ["x₁", "x₂"] },
    bias: true, learner: "", predicts: "last", rule: { name: "perceptron", margin: 1, C: 1, asks: "sign", spread: "" }, tie: "mistake", order: "cyclic", steps: [],
    pass_starts: [], complete: true, n_steps: 0, mistakes: { step: [], up: [], down: [], by: null }, w: [new Array(classes.length > 2 ? 3 * classes.length : 3).fill(0)],
    kernel: null, kept: null, n_mistakes: 0, mistakes_per_pass: [], converged: false, cycle: null, held_out: null, R2: 1, separator: null,
    proof: true, bounds: [], why_no_bound: "", certificate: null, max_margin: null, source: { features: [], classes: [] },
    plane: { kind: "features", origin: [0, 0], across: [[1, 0], [0, 1]], axes: ["x₁", "x₂"], note: "" },
  };
}
