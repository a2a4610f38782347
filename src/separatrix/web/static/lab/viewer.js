// The viewer: the picture, the panels and the step controls. It needs only a document, no server.

import { h, put, s, save } from "./dom.js";
import { fileName, savePng, traceCsv } from "./exports.js";
import { animatedGif } from "./film.js";
import { certificatePanel, outcome, passesPanel, proofPanel, stepPanel } from "./panels.js";
import { Picture, VIEWS, available } from "./picture.js";
import { Quiz } from "./quiz.js";
import { Run } from "./run.js";
import { SHAPES, count, displayName, label, num } from "./formatting.js";

/** @import { Changed } from "./dom.js" */
/** @import { Shown } from "./picture.js" */
/** @import { RunDocument } from "./engine/types.js" */
/** @import { Beginning, Made } from "./run.js" */
/** @typedef {Shown} ViewState */

// The word "mistake", or a cross on a narrow screen.
function mistakeWord() {
  return [h("span", { class: "wide" }, "mistake"), h("span", { class: "narrow" }, "✗")];
}

const EMBEDDED_STEP = 248; // the height that the lines of a step need below the picture
const LECTURE_ZOOM = 1.5;
const SPEEDS = [0.5, 1, 2, 5, 20, 100];

export class Viewer {
  /**
   * @param {HTMLElement} root
   * @param {{ onChange?: (state: ViewState) => void, extras?: HTMLElement[] }} options `extras` are more buttons
   */
  constructor(root, { onChange = () => {}, extras = [] } = {}) {
    this.onChange = onChange;
    /** @type {ViewState} */
    this.state = { t: 0, views: ["last"], street: true, witness: true };
    this.whole = false;
    this.speed = 1;
    /** @type {number | null} */
    this.timer = null;
    /** @type {number[] | null} */
    this.window = null;
    /** @type {Run | null} */
    this.loaded = null;
    /** @type {Picture | null} */
    this.drawn = null;
    this.drawnWidth = 0;
    this.zoom = 1;
    /** @type {number[] | null} */
    this.cross = null;
    this.quizzing = false;
    const button = (/** @type {string} */ id, /** @type {string | (string | HTMLElement)[]} */ text, /** @type {string} */ title, /** @type {() => void} */ action) => h("button", { type: "button", id, title, "aria-label": title, onclick: action }, text);
    this.canvas = h("canvas", { id: "picture", role: "img" });
    this.stage = h("div", { class: "stage" }, this.canvas);
    this.legend = h("div", { class: "legend", role: "group", "aria-label": "Boundaries shown" });
    this.key = h("p", { class: "key", id: "key" });
    this.note = h("p", { class: "note", id: "plane-note" });
    this.scrub = h("input", { type: "range", id: "scrub", min: 0, step: 1, "aria-label": "Step", oninput: () => this.go(Number(this.scrub.value)) });
    this.marks = h("canvas", { class: "marks", "aria-hidden": "true", height: 10 });
    this.where = h("output", { id: "where", for: "scrub" });
    this.playing = button("play", "▶ Play", "Play (space)", () => this.toggle());
    this.tempo = h("select", { id: "speed", onchange: () => { this.speed = Number(this.tempo.value); this._restart(); } },
      SPEEDS.map((speed) => h("option", { value: speed, selected: speed === 1 }, `${speed} / s`)));
    const transport = h("div", { class: "transport", role: "group", "aria-label": "Steps" },
      button("first", "|◀", "Go to the beginning (Home)", () => this.go(0)),
      button("back-mistake", ["◀ ", ...mistakeWord()], "Previous mistake (up arrow)", () => this.mistake(-1)),
      button("back", "◀", "Previous example (left arrow)", () => this.go(this.state.t - 1)),
      this.playing,
      button("forward", "▶", "Next example (right arrow)", () => this.go(this.state.t + 1)),
      button("forward-mistake", [...mistakeWord(), " ▶"], "Next mistake (down arrow)", () => this.mistake(1)),
      button("end", "▶|", "Go to the end (End)", () => this.go(Infinity)),
      h("label", { class: "speed" }, "steps ", this.tempo));
    this.live = h("p", { class: "hidden", role: "status", "aria-live": "polite", id: "live" });
    this.panels = Object.fromEntries(["quiz", "step", "proof", "certificate", "passes"].map((name) => [name, h("section", { class: "card", id: `${name}-panel`, "aria-label": name[0].toUpperCase() + name.slice(1) })]));
    this.takeaways = h("div", { class: "takeaways", role: "group", "aria-label": "Save" },
      h("span", { class: "quiet" }, "Save"),
      button("save-png", "PNG", "Save the picture as PNG", () => savePng(this.canvas, fileName(this.run, "png"))),
      button("save-svg", "SVG", "Save the picture as SVG", () => save(fileName(this.run, "svg"), this.picture.toSvg(this.state), "image/svg+xml")),
      button("save-gif", "GIF", "Save the steps as an animated GIF", () => this._saveGif()),
      button("save-csv", "CSV", "Save every step as CSV", () => save(fileName(this.run, "csv"), traceCsv(this.run), "text/csv")),
      button("save-python", "Python", "Save a Python program that does the same", () => save(fileName(this.run, "py"), this.run.doc.snippet, "text/x-python")),
      extras);
    this.tools = h("div", { id: "tools" });
    put(root,
      h("div", { class: "left" },
        h("section", { class: "card picture", "aria-label": "Picture" }, h("div", { class: "over" }, this.key, this.where, this.tools), this.stage,
          h("div", { class: "scrubber" }, this.scrub, this.marks), h("div", { class: "under" }, transport), this.legend, this.note, this.takeaways),
        h("div", { class: "pair" }, this.panels.certificate, this.panels.passes)),
      h("div", { class: "right" }, this.panels.quiz, this.panels.step, this.panels.proof),
      this.live);
    this.quiz = new Quiz(this, this.panels.quiz);
    document.addEventListener("keydown", (event) => this._key(event));
    new ResizeObserver(() => this._resize()).observe(this.stage);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.render());
  }

  /** The run that is shown; there is none before the first load(). */
  get run() {
    if (!this.loaded) throw new Error("the viewer shows no run yet");
    return this.loaded;
  }

  get picture() {
    if (!this.drawn) throw new Error("the viewer shows no run yet");
    return this.drawn;
  }

  /**
   * Show a document.
   * @param {RunDocument} doc
   * @param {{ t?: number, views?: string[] }} state the step and the boundaries to begin with
   */
  load(doc, state = {}) {
    this.stop();
    this.loaded = new Run(doc);
    const can = available(this.run);
    const views = state.views ?? [...new Set(["last", doc.predicts])];
    this.state = { ...this.state, views: views.filter((/** @type {string} */ view) => can[view] === true), t: 0 };
    this.state.t = this._clamped(state.t ?? 0);
    this.scrub.max = String(this.run.steps);
    this._legend(can);
    for (const name of ["gif", "csv", "python", "page"]) this.takeaways.querySelector(`#save-${name}`)?.toggleAttribute("disabled", !this.run.steps);
    for (const name of ["proof", "certificate", "passes"]) this.panels[name].hidden = !this.run.steps;
    this.quiz.reset();
    this.panels.quiz.hidden = !this.quizzing || !this.run.steps;
    certificatePanel(this.panels.certificate, this.run);
    this._resize(true);
  }

  /** Whether points are drawn in the picture, which then takes the focus and keys. @param {boolean} on */
  setEditing(on) {
    this.stage.classList.toggle("editing", on);
    this.canvas.setAttribute("role", on ? "application" : "img");
    if (on) this.canvas.tabIndex = 0;
    else this.canvas.removeAttribute("tabindex");
  }

  /** @param {number[] | null} pixel where a cross is drawn @param {string} told to a screen reader */
  showCross(pixel, told) {
    this.cross = pixel;
    this.render();
    if (told) this.live.textContent = told;
  }

  /** Ask before each step, or stop asking. @param {boolean} on */
  setQuiz(on) {
    this.quizzing = on;
    this.quiz.reset();
    document.body.classList.toggle("quizzing", on);
    this.panels.quiz.hidden = !on || !this.loaded?.steps;
    if (this.loaded) this.render();
  }

  _saveGif() {
    save(fileName(this.run, "gif"), animatedGif(this.run, this.state, this.window));
  }

  /** @param {Record<string, boolean>} can */
  _legend(can) {
    const box = (/** @type {string} */ id, /** @type {string} */ title, /** @type {boolean} */ on, /** @type {(on: boolean) => void} */ change, swatch = /** @type {SVGElement | null} */ (null)) =>
      h("label", { class: "view" }, h("input", { type: "checkbox", id, checked: on, onchange: (/** @type {Changed} */ event) => change(event.target.checked) }), swatch, title);
    const { doc } = this.run;
    const views = VIEWS.filter(({ name }) => can[name] || name === "margin").map(({ name, title, dash }) =>
      can[name]
        ? box(`view-${name}`, title, this.state.views.includes(name), (/** @type {boolean} */ on) => this._toggleView(name, on), swatch(name, dash))
        : null);
    put(this.legend, views,
      doc.max_margin ? box("show-street", this.run.K === 1 ? "margin band" : "support vectors", this.state.street, (/** @type {boolean} */ on) => this._set({ street: on })) : null,
      doc.certificate?.witness.length ? box("show-witness", "witness", this.state.witness, (/** @type {boolean} */ on) => this._set({ witness: on })) : null);
    put(this.key, doc.classes.map((_, c) => h("span", null, h("i", { class: `shape c${c % 7}`, "aria-hidden": "true" }, SHAPES[c % 7]), ` ${label(doc.classes, c)}`)),
      doc.x.length > doc.n_train ? h("span", null, "hollow: held out") : null);
    this.note.textContent = doc.plane.note;
  }

  /** @param {string} name @param {boolean} on */
  _toggleView(name, on) {
    this._set({ views: on ? [...this.state.views, name] : this.state.views.filter((view) => view !== name) });
  }

  /** @param {Partial<ViewState>} change */
  _set(change) {
    this.state = { ...this.state, ...change };
    this.render();
    this.onChange(this.state);
  }

  /** @param {number} t */
  _clamped(t) {
    return Math.max(0, Math.min(this.run.steps, Number.isFinite(t) ? Math.round(t) : this.run.steps));
  }

  /** @param {number} t */
  go(t) {
    if (t !== this.state.t || t > this.run.steps) this._set({ t: this._clamped(t) });
  }

  /** Go to the next or previous mistake; after the last one to the end, before the first one to the beginning. @param {number} direction */
  mistake(direction) {
    const { run, state } = this;
    const k = run.mistakesAt(state.t);
    if (direction > 0) this.go(k < run.m ? run.mistakeSteps[k] : run.steps);
    else this.go(k > 1 && run.isMistake(state.t) ? run.mistakeSteps[k - 2] : k > 0 && !run.isMistake(state.t) ? run.mistakeSteps[k - 1] : 0);
  }

  toggle() {
    if (this.timer) this.stop();
    else {
      if (this.state.t >= this.run.steps) this.go(0);
      this.play();
    }
  }

  play() {
    const began = performance.now();
    const from = this.state.t;
    const frame = (/** @type {number} */ now) => {
      const t = Math.min(this.run.steps, from + Math.floor(((now - began) / 1000) * this.speed));
      if (t !== this.state.t) this.go(t);
      this.timer = t >= this.run.steps ? null : requestAnimationFrame(frame);
      this._playing();
    };
    this.timer = requestAnimationFrame(frame);
    this._playing();
  }

  stop() {
    if (this.timer) cancelAnimationFrame(this.timer);
    /** @type {number | null} */
    this.timer = null;
    this._playing();
  }

  _restart() {
    if (!this.timer) return;
    this.stop();
    this.play();
  }

  _playing() {
    this.playing.textContent = this.timer ? "⏸ Pause" : "▶ Play";
    this.playing.setAttribute("aria-label", this.timer ? "Pause (space)" : "Play (space)");
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (!this.loaded || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = /** @type {Element} */ (event.target);
    if (at.matches("textarea, select, input:not([type=range]):not([type=checkbox])")) return;
    if (this.quizzing && /^[1-9]$/.test(event.key)) {
      if (this.quiz.choose(Number(event.key))) event.preventDefault();
      return;
    }
    if (event.key === " " && at.matches("button, summary, input[type=checkbox], a")) return;
    /** @type {Record<string, () => void>} */
    const moves = {
      ArrowRight: () => (event.shiftKey ? this.mistake(1) : this.go(this.state.t + 1)),
      ArrowLeft: () => (event.shiftKey ? this.mistake(-1) : this.go(this.state.t - 1)),
      ArrowDown: () => this.mistake(1),
      ArrowUp: () => this.mistake(-1),
      Home: () => this.go(0),
      End: () => this.go(Infinity),
      " ": () => this.toggle(),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    if (event.key !== " ") this.stop();
    moves[event.key]();
  }

  // Draw the picture anew after the layout has changed.
  resize() {
    this._resize(true);
  }

  _resize(force = false) {
    if (!this.loaded) return;
    const width = Math.floor(this.stage.clientWidth);
    if (!width || (!force && width === this.drawnWidth)) return;
    this._where(this.run.at(this.state.t)); // it may need a line of its own
    const { classList } = document.body;
    // as high as possible with the legend and the buttons below it still visible; in an embedded page the step, too
    const below = classList.contains("embed") ? EMBEDDED_STEP : 8;
    const card = (this.stage.parentElement ?? this.stage).getBoundingClientRect();
    const stage = this.stage.getBoundingClientRect();
    const room = globalThis.innerHeight - (stage.top + globalThis.scrollY) - (card.bottom - stage.bottom) - below;
    const least = width < 500 ? width * 0.7 : width < 640 ? width * 0.5 : Math.min(width * 0.5, 260);
    const height = Math.round(Math.min(width * (width < 500 ? 0.9 : 0.72), Math.max(least, room)));
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.drawnWidth = width;
    this.zoom = classList.contains("lecture") && width > 640 ? LECTURE_ZOOM : 1;
    this.drawn = new Picture(this.run, width / this.zoom, height / this.zoom, this.window);
    this._drawMarks();
    this.render();
  }

  // Draw the mistakes as ticks below the slider.
  _drawMarks() {
    const width = this.marks.clientWidth || 600;
    this.marks.width = width;
    const context = /** @type {CanvasRenderingContext2D} */ (this.marks.getContext("2d"));
    context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--bad").trim();
    const room = width - 16;
    const crowded = this.run.m > room / 4;
    context.globalAlpha = crowded ? Math.max(0.03, room / 4 / this.run.m) : 1;
    for (const step of this.run.mistakeSteps) context.fillRect(8 + (room * step) / Math.max(1, this.run.steps) - 1, 1, 2, 8);
  }

  /** @param {Made | Beginning} now */
  _where(now) {
    put(this.where, h("b", null, `step ${now.t.toLocaleString("en")}`), ` of ${this.run.steps.toLocaleString("en")}, `, h("b", null, count(now.k, "mistake")), now.pass ? `, pass ${now.pass}` : "");
  }

  // The band is drawn at the end, or with the boundary that it belongs to; elsewhere its box would do nothing.
  _bandBox(/** @type {ViewState} */ state) {
    const box = /** @type {HTMLInputElement | null} */ (this.legend.querySelector("#show-street"));
    if (!box) return;
    box.disabled = !this.picture.hasStreet(state);
    box.labels?.[0]?.setAttribute("title", box.disabled ? "Drawn at the last step, or with the max-margin boundary" : "");
  }

  render() {
    if (!this.drawn) return;
    const { run, state } = this;
    const now = run.at(state.t);
    const asking = this.quizzing && run.steps > 0;
    if (asking) this.quiz.show(state.t);
    const ratio = this.zoom * Math.min(3, globalThis.devicePixelRatio || 1);
    this.picture.onCanvas(this.canvas, { ...state, upcoming: asking ? this.quiz.upcoming() : null, cross: this.cross }, ratio);
    this._bandBox(state);
    this.scrub.value = String(state.t);
    this.scrub.setAttribute("aria-valuetext", `step ${state.t} of ${run.steps}`);
    this._where(now);
    stepPanel(this.panels.step, run, state.t);
    proofPanel(this.panels.proof, run, state.t, this.whole, (on) => { this.whole = on; this.render(); document.getElementById("whole")?.focus(); });
    passesPanel(this.panels.passes, run, state.t);
    const position = now.example === null ? "before the first step" : `step ${state.t}, example ${now.example}, ${now.mistake ? `mistake ${now.k}` : "right"}, lead ${num(now.lead)}`;
    const end = state.t === run.steps && run.steps ? ` ${outcome(run)}` : "";
    this.live.textContent = this.timer ? "" : `${position}.${end}`;
    const keys = this.stage.classList.contains("editing") ? "; the arrow keys move a cross, Enter uses the tool there" : "";
    this.canvas.setAttribute("aria-label", `${displayName(run.doc.name)}: ${count(run.doc.x.length, "example")} of ${run.classes.length} classes and the boundary; ${position}${keys}`);
  }
}

/** @param {string} name @param {number[]} dash */
function swatch(name, dash) {
  const line = s("line", { x1: 1, y1: 6, x2: 31, y2: 6, "stroke-dasharray": dash.join(" ") || null });
  return s("svg", { class: `swatch ${name}`, viewBox: "0 0 32 12", width: 28, height: 12, "aria-hidden": "true" }, line);
}
