// The controls of the lab. What they offer (`choices`) comes from lab.json, which Python writes.

import { h, morph } from "./dom.js";
import { outOfRange } from "./engine/recipe.js";

/** @import { Changed } from "./dom.js" */
/** @import { Lab, Recipe, RunDocument } from "./engine/types.js" */

const PASSES = { 0: "until convergence", 1: "1", 2: "2", 5: "5", 10: "10", 20: "20", 50: "50", 100: "100" };

/** The entries of a table with the given names, in the table's order. @param {Record<string, any>} table @param {string[]} names */
function some(table, names) {
  return Object.fromEntries(Object.entries(table).filter(([name]) => names.includes(name)));
}

/**
 * The meaning of ties by its name for so many classes: that of the first class is −1 for two.
 * @param {string | undefined} tie
 * @param {Record<string, string>} ties
 */
function shownTie(tie, ties) {
  if (tie === undefined || tie in ties) return tie;
  return tie === "+1" ? "mistake" : "first" in ties ? "first" : "-1";
}

export class Controls {
  /**
   * @param {HTMLFormElement} form
   * @param {Lab} choices
   * @param {{ onRecipe: (recipe: Recipe) => void, onMessage: (text: string) => void, onDraw: (fresh: Partial<Recipe>) => void, onWait: (recipe: Recipe) => void }} listeners
   *   `onDraw`: points are to be drawn; `onWait`: the data of the recipe are still to come
   */
  constructor(form, choices, { onRecipe, onMessage, onDraw, onWait }) {
    this.form = form;
    this.choices = choices;
    this.onRecipe = onRecipe;
    this.onMessage = onMessage;
    this.onDraw = onDraw;
    this.onWait = onWait;
    this.recipe = choices.defaults;
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  /** Draw the controls for a recipe; `doc` has the features and classes of the data. @param {Recipe} recipe */
  show(recipe, doc = /** @type {RunDocument | null} */ (null)) {
    this.recipe = recipe;
    const source = doc?.source ?? { features: [], classes: [] };
    const nClasses = doc?.classes.length ?? 2;
    const { learners, rules, orders, two_class_ties, multi_class_ties, maps, kernels } = this.choices;
    const ties = nClasses > 2 ? multi_class_ties : two_class_ties;
    const learner = learners[recipe.learner] ?? { rules: [], orders: [] };
    const rule = rules[learner.rules.includes(recipe.rule) ? recipe.rule : learner.rules[0]];
    const usesSeed = recipe.order !== "cyclic" || recipe.data === "random" || recipe.holdout > 0 || (recipe.map === "fourier" && recipe.learner !== "kernel");
    morph(this.form, h("form", { id: this.form.id, class: this.form.className, "aria-label": this.form.getAttribute("aria-label") },
      h("fieldset", null, h("legend", null, "Data"), h("div", { class: "fields" },
        this._data(recipe),
        recipe.data === "random" && [this._number("n", "points", 1), this._number("classes", "classes", 1), this._number("gap", "margin", 0.1), this._number("noise", "wrong labels", 0.01)],
        recipe.data !== "points" && recipe.data !== "random" && source.classes.length > 2 && this._choice("positive", "classes", { "": "all", ...Object.fromEntries(source.classes.map((/** @type {string} */ c) => [c, `${c} against the rest`])) }),
        source.features.length > 2 && this._columns(source.features),
        this._number("holdout", "held out", 0.1)),
        recipe.data === "csv" && this._csv()),
      h("fieldset", null, h("legend", null, "Learner"), h("div", { class: "fields" },
        this._choice("learner", "algorithm", learners),
        rule && this._choice("rule", "rule", some(rules, learner.rules)),
        rule?.asks === "margin" && this._number("margin", "margin β", 0.5),
        rule?.has_C && this._number("C", "C", "any"),
        this._choice("tie", "a score of 0 is", ties, shownTie(recipe.tie ?? doc?.recipe.tie, ties)),
        this._field("bias", "bias", h("input", { type: "checkbox", id: "bias", checked: (recipe.bias ?? doc?.recipe.bias) === true, onchange: (/** @type {Changed} */ event) => this._set({ bias: event.target.checked }) })),
        this._choice("order", "order", some(orders, learner.orders)),
        this._choice("passes", "passes", recipe.passes in PASSES ? PASSES : { ...PASSES, [recipe.passes]: String(recipe.passes) }),
        recipe.learner === "kernel" ? this._choice("kernel", "kernel", kernels) : this._choice("map", "feature map", maps),
        (recipe.learner === "kernel" ? recipe.kernel !== "linear" : recipe.map === "fourier") && this._number("gamma", "γ of the kernel", "any"),
        recipe.learner === "kernel" && recipe.kernel === "poly" && this._number("degree", "degree", 1),
        recipe.learner !== "kernel" && recipe.map === "fourier" && this._number("components", "features", 1),
        usesSeed && this._number("seed", "seed", 1)))));
  }

  /** A change adds to the last recipe at once, also while an earlier one is still being run: the last choice wins. @param {Partial<Recipe>} change */
  _set(change) {
    this.recipe = { ...this.recipe, ...change };
    this.onRecipe(this.recipe);
  }

  /** @param {string} id @param {string} title @param {HTMLElement} control */
  _field(id, title, control) {
    return h("div", { class: "field", "data-key": `field-${id}` }, h("label", { for: id }, title), control);
  }

  /**
   * `options` has a title for each name, or an object with a title and a sentence that explains it.
   * @param {keyof Recipe} key
   * @param {string} title
   * @param {Record<string, any>} options
   */
  _choice(key, title, options, value = this.recipe[key]) {
    const numeric = typeof this.choices.defaults[key] === "number";
    const change = (/** @type {Changed} */ event) => this._chosen(key, numeric ? Number(event.target.value) : event.target.value);
    return this._field(key, title, h("select", { id: key, onchange: change },
      Object.entries(options).map(([name, option]) => h("option", { value: name, selected: String(value) === name, title: option.sentence }, option.title ?? option))));
  }

  /** @param {keyof Recipe} key @param {any} value */
  _chosen(key, value) {
    const change = { [key]: value };
    if (key === "learner") {
      const { learners, defaults } = this.choices;
      const { rules } = learners[value];
      if (rules.length && !rules.includes(this.recipe.rule)) change.rule = rules[0];
      else if (this.recipe.learner === "passive-aggressive") change.rule = defaults.rule;
    }
    const endless = (change.rule ?? this.recipe.rule) !== "perceptron" && ["rule", "learner"].includes(key);
    if (endless && this.recipe.passes === 0) change.passes = 10; // such rules may never make a pass without a correction
    if (key === "positive") change.tie = null;
    this._set(change);
  }

  /** @param {keyof Recipe} key @param {string} title @param {number | string} step */
  _number(key, title, step) {
    const { least, above, most } = this.choices.ranges[key];
    const change = (/** @type {Changed} */ event) => {
      const value = event.target.value === "" ? NaN : Number(event.target.value);
      const problem = outOfRange(key, value, this.choices);
      if (problem) this.onMessage(`${title} ${problem}`);
      else this._set({ [key]: value });
    };
    return this._field(key, title, h("input", { type: "number", id: key, min: least ?? above, max: most, step, value: this.recipe[key], onchange: change }));
  }

  /** @param {Recipe} recipe */
  _data(recipe) {
    const group = (/** @type {string} */ name, /** @type {[string, string][]} */ entries) => h("optgroup", { label: name }, entries.map(([value, text]) => h("option", { value, selected: recipe.data === value }, text)));
    const change = (/** @type {Changed} */ event) => this._pick(event.target.value);
    return this._field("data", "examples", h("select", { id: "data", onchange: change },
      group("Lecture examples", this.choices.lectures.map(({ name, title }) => [`lecture:${name}`, `${name} ${title}`])),
      group("Data sets", this.choices.sets.map((name) => [name, name.replace("_", " ")])),
      group("Your own", [["points", "draw points"], ["random", "random points"], ["csv", "CSV: paste or upload"]])));
  }

  /** @param {string} data */
  _pick(data) {
    const fresh = { data, tie: null, bias: null, positive: "", columns: [], passes: data.startsWith("lecture:") ? 0 : 20 };
    if (data === "points") this.onDraw(fresh);
    else if (data === "csv" && !this.recipe.csv) {
      this.show({ ...this.recipe, ...fresh });
      this.onWait(this.recipe);
    } else this._set(fresh);
  }

  /** @param {string[]} names */
  _columns(names) {
    const [a, b] = this.recipe.columns;
    const pair = (/** @type {number | null} */ first, /** @type {number | null} */ second) => this._set({ columns: first === null || second === null ? [] : [first, second] });
    const now = () => this.recipe.columns;
    const select = (/** @type {string} */ id, /** @type {any} */ value, /** @type {(j: number | null) => void} */ change) => h("select", { id, onchange: (/** @type {Changed} */ event) => change(event.target.value === "" ? null : Number(event.target.value)) },
      h("option", { value: "", selected: value === undefined }, "all (projected)"),
      names.slice(0, 40).map((name, j) => h("option", { value: j, selected: value === j }, name)));
    const other = (/** @type {number} */ j) => (j === 0 ? 1 : 0);
    return [
      this._field("column-1", "across", select("column-1", a, (j) => pair(j, j === null ? null : now()[1] !== undefined && now()[1] !== j ? now()[1] : other(j)))),
      a !== undefined && this._field("column-2", "up", select("column-2", b, (j) => pair(j === null ? null : now()[0] !== j ? now()[0] : other(j), j))),
    ];
  }

  _csv() {
    const text = h("textarea", { id: "csv-text", rows: 5, spellcheck: "false", placeholder: "width,height,kind\n1,2.5,a\n3,1,b" }, this.recipe.csv);
    const most = this.choices.limits.csv;
    const pasted = this.choices.defaults.file;
    const tooLong = (/** @type {string} */ file, /** @type {number} */ size) => `${file} has ${(size / 1e6).toFixed(1)} MB: the lab accepts at most ${most / 1e6} MB`;
    const use = (/** @type {string} */ csv, /** @type {string} */ file) => {
      if (!csv.trim()) this.onMessage(file === pasted ? "There are no rows yet: paste some, or choose a file." : `${file}: the file is empty`);
      else if (csv.length > most) this.onMessage(tooLong(file, csv.length));
      else this._set({ csv, file, columns: [], positive: "" });
    };
    const upload = async (/** @type {Changed} */ event) => {
      const file = event.target.files?.[0];
      if (!file) return;
      if (file.size > most) this.onMessage(tooLong(file.name, file.size));
      else use(await file.text(), file.name);
      event.target.value = ""; // so that the same file, changed, can be chosen again
    };
    return h("div", { class: "csv" },
      h("label", { for: "csv-text" }, "Rows of numbers with the label last; a header line is optional"), text,
      h("div", { class: "fields" },
        h("button", { type: "button", id: "use-csv", onclick: () => use(/** @type {HTMLTextAreaElement} */ (this.form.elements.namedItem("csv-text")).value, pasted) }, "Use these rows"),
        this._field("csv-file", "or a file", h("input", { type: "file", id: "csv-file", accept: ".csv,.tsv,.txt,text/csv", onchange: upload }))));
  }
}
