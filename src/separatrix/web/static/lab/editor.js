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
    this.names = ["-1", "1"];
    this.tool = "1";
    const { canvas } = viewer;
    canvas.addEventListener("pointerdown", (event) => this._down(event));
    canvas.addEventListener("pointermove", (event) => this._move(event));
    canvas.addEventListener("pointerup", (event) => this._up(event));
    canvas.addEventListener("pointercancel", () => { this.dragged = null; });
    document.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && this.points && !(/** @type {Element} */ (event.target).matches("input, textarea"))) {
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
    this.viewer.stage.classList.toggle("editing", points !== null);
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
    if (!this.points) {
      const editable = this.doc && this.doc.plane.kind === "features" && this.doc.features.length === 2 && this.doc.x.length <= MOST_EDITED;
      put(tools, editable ? h("button", { type: "button", id: "edit", onclick: () => this._copy() }, "Edit these points") : null);
      return;
    }
    const numbers = this.names.map(Number);
    const classes = numbers.every(Number.isInteger) ? numbers : this.names;
    const radio = (/** @type {string} */ value, /** @type {string} */ text, kind = "") => h("label", { class: `tool ${kind}` },
      h("input", { type: "radio", name: "tool", value, checked: this.tool === value, onchange: () => { this.tool = value; } }), h("span", null, text));
    put(tools, h("div", { class: "tools", role: "group", "aria-label": "Drawing" },
      this.names.map((name, c) => radio(name, `add ${label(classes, c)}`, `c${c % 7}`)),
      this.names.length < 6 ? h("button", { type: "button", id: "add-class", onclick: () => this._addClass() }, "+ class") : null,
      radio("move", "move"), radio("relabel", "relabel"), radio("delete", "delete"),
      h("button", { type: "button", id: "undo", disabled: !this.past.length, title: "Undo (Ctrl+Z)", onclick: () => this.undo() }, "Undo"),
      h("button", { type: "button", id: "clear", disabled: !this.points.length, onclick: () => this._change([]) }, "Clear")));
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
    const digits = Math.max(0, 2 - Math.floor(Math.log10(x1 - x0)));
    return frame.fromPixels(pixel).map((/** @type {number} */ value) => Number(value.toFixed(digits)));
  }

  /** @param {PointerEvent} event */
  _down(event) {
    if (!this.points || event.button !== 0) return;
    const pixel = this._pixel(event);
    const i = this.points.length ? this.viewer.picture.frame.pick(pixel[0], pixel[1]) : null;
    if (i !== null && this.tool === "delete") this._change(this.points.filter((_, j) => j !== i));
    else if (i !== null && this.tool === "relabel") {
      const [x, y, name] = this.points[i];
      const next = this.names[(this.names.indexOf(name) + 1) % this.names.length];
      this._change(this.points.map((point, j) => (j === i ? [x, y, next] : point)));
    } else if (i !== null) {
      this.dragged = { i, from: pixel };
      this.viewer.canvas.setPointerCapture(event.pointerId);
    } else if (this.names.includes(this.tool)) {
      const [x, y] = this._rounded(pixel);
      this._change([...this.points, [x, y, this.tool]]);
    }
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
    const [x, y] = this._rounded(pixel);
    this._change(this.points.map((point, j) => (j === i ? [x, y, point[2]] : point)));
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
