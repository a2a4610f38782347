// A recipe becomes the document of a run: the examples, their order, the ledger, and what is proven. The page shows it step by step.

import { boundsOf } from "./bounds.js";
import { certified } from "./certificate.js";
import { againstTheRest, examplesOf } from "./data.js";
import { RecipeError, Superseded } from "./errors.js";
import { largest } from "./extremes.js";
import { heldOutAccuracy } from "./heldout.js";
import { classesOf, encoded } from "./labels.js";
import { KernelMachine, LinearMachine, gramMatrix } from "./machine.js";
import { dot, mapFeatures, mapOf } from "./maps.js";
import { unitSeparator, widestMargin } from "./margins.js";
import { planeOf } from "./plane.js";
import { programOf } from "./program.js";
import { stratifiedSplit } from "./split.js";
import { training } from "./training.js";
import { certificatePart } from "./wording.js";

/** @import { Training } from "./training.js" */
/** @import { Examples, FeatureMap, Lab, Recipe, Settings, Vector } from "./types.js" */

export const FORMAT = "separatrix run 1";
const PATIENCE = 1500; // the time limit of each proof, in milliseconds
const MOST_FOR_BOUNDS = 5000; // the most examples for which bounds are evaluated
const SLICE = 12; // training pauses after so many milliseconds, so that the page stays responsive
const LONGEST = 20_000; // and ends after so many

/**
 * @typedef {{ lab: Lab, readSet: (name: string) => Promise<{ features: string[], labels: string[], X: Vector[] }>, isCurrent?: () => boolean }} Surroundings
 */

/** @param {number} d @returns {string[]} x₁, x₂, …, the names of features without names */
function plainNames(d) {
  return Array.from({ length: d }, (_, j) => "x" + Array.from(String(j + 1), (digit) => "₀₁₂₃₄₅₆₇₈₉"[Number(digit)]).join(""));
}

/** @param {Vector[]} rows @param {number} most */
function checkSize(rows, most, /** @type {string} */ name) {
  if (rows.length > most) throw new RecipeError(`${name} has ${rows.length.toLocaleString("en")} examples: the lab supports at most ${most.toLocaleString("en")}`);
}

/**
 * The settings of the learner, with the source's own bias and meaning of ties where the recipe leaves them open.
 * @param {Recipe} recipe
 * @param {Examples} examples
 * @param {number} nClasses
 * @param {Lab} lab
 * @returns {Settings}
 */
export function settingsOf(recipe, examples, nClasses, lab) {
  const learner = lab.learners[recipe.learner];
  const rule = recipe.learner === "kernel" ? "perceptron" : learner.rules.includes(recipe.rule) ? recipe.rule : learner.rules[0];
  const order = learner.orders.includes(recipe.order) ? recipe.order : "shuffle";
  let tie = recipe.tie || examples.tie;
  if (nClasses > 2 && tie === "+1") tie = "mistake";
  const kernel = recipe.learner === "kernel" ? { kind: recipe.kernel, gamma: recipe.gamma, coef0: 1, degree: recipe.degree } : null;
  const { asks, spread } = lab.rules[rule];
  const n = examples.X.length;
  if (recipe.passes === 0 && n > lab.limits.open_ended) {
    throw new RecipeError(`"until convergence" supports at most ${lab.limits.open_ended.toLocaleString("en")} examples: choose a number of passes`);
  }
  if (kernel && n > lab.limits.kernel_rows) {
    throw new RecipeError(`the lab supports kernels for at most ${lab.limits.kernel_rows.toLocaleString("en")} examples; there are ${n.toLocaleString("en")}`);
  }
  return { learner: recipe.learner, rule, asks, spread, C: recipe.C, margin: recipe.margin, tie, bias: recipe.bias ?? examples.bias, order, passes: recipe.passes, seed: recipe.seed, kernel };
}

/**
 * @param {Recipe} recipe
 * @param {Surroundings} surroundings
 */
async function prepared(recipe, { lab, readSet }) {
  const source = await examplesOf(recipe, lab, readSet);
  const chosen = recipe.positive && recipe.data !== "points" && recipe.data !== "random" ? againstTheRest(source, recipe.positive) : source;
  checkSize(chosen.X, lab.limits.rows, chosen.name);
  const all = chosen.features ?? plainNames(chosen.X[0].length);
  const missing = recipe.columns.find((j) => j >= all.length);
  if (missing !== undefined) throw new RecipeError(`${chosen.name} has ${all.length} features: there is no feature number ${missing}`);
  const examples = recipe.columns.length ? { ...chosen, X: chosen.X.map((x) => recipe.columns.map((j) => x[j])) } : chosen;
  const features = recipe.columns.length ? recipe.columns.map((j) => all[j]) : all;
  const classes = classesOf(examples.labels);
  if (classes.length < 2) throw new RecipeError(`a boundary needs two classes: add ${recipe.data === "points" ? "a point" : "an example"} of another class`);
  return { source: { features: all, classes: classesOf(source.labels).slice(0, 40).map(String) }, examples, features, classes, codes: encoded(classes, examples.labels) };
}

/**
 * Train, and return everything that the page shows.
 * @param {Recipe} recipe
 * @param {Surroundings} surroundings
 */
export async function documentOf(recipe, surroundings) {
  const { lab, isCurrent = () => true } = surroundings;
  const { source, examples, features, classes, codes: allCodes } = await prepared(recipe, surroundings);
  const settings = settingsOf(recipe, examples, classes.length, lab);
  const all = allCodes.map((_, i) => i);
  const { train, test } = recipe.holdout ? stratifiedSplit(allCodes, recipe.holdout, recipe.seed) : { train: all, test: [] };
  const [X, codes] = [train.map((i) => examples.X[i]), train.map((i) => allCodes[i])];
  if (new Set(codes).size < classes.length) throw new RecipeError("a class has no example to train on: hold out less");
  const map = mapOf(recipe, features);
  if (X.length * map.names.length > lab.limits.numbers) {
    throw new RecipeError(`${examples.name} is too large for a page: ${X.length.toLocaleString("en")} examples of ${map.names.length.toLocaleString("en")} features`);
  }
  const lift = (/** @type {Vector} */ x) => (settings.bias ? [...mapFeatures(map, x), 1] : mapFeatures(map, x));
  const Z = X.map(lift);
  const huge = Z.findIndex((z) => !Number.isFinite(dot(z, z)));
  if (huge >= 0) throw new RecipeError(`row ${huge} of X is too large to score: its squared norm is above the largest float64`);
  const { run, machine } = await trained(X, Z, codes, classes.length, settings, test.map((i) => examples.X[i]), test.map((i) => allCodes[i]), map, lab, isCurrent);
  const { lines, path } = cut(run, lab, settings);
  const last = path?.at(-1) ?? null;
  const outputs = classes.length > 2 ? classes.length : 1;
  const width = Z[0].length;
  const own = last && map.kind === "none" ? Array.from({ length: outputs }, (_, c) => Array.from(last.slice(c * width, (c + 1) * width))) : null;
  return {
    format: FORMAT,
    name: examples.name,
    recipe: { ...recipe, bias: settings.bias, tie: settings.tie, csv: undefined, points: undefined },
    source,
    snippet: programOf(recipe, settings, examples, lab),
    features,
    classes,
    n_train: X.length,
    x: [...X, ...test.map((i) => examples.X[i])],
    y: [...codes, ...test.map((i) => allCodes[i])],
    map,
    bias: settings.bias,
    learner: lab.learners[recipe.learner].name,
    predicts: lab.learners[recipe.learner].predicts,
    rule: { name: settings.rule, margin: settings.margin, C: settings.C, asks: settings.asks, spread: settings.spread },
    tie: settings.tie,
    order: settings.order,
    ...lines,
    w: path,
    kernel: settings.kernel,
    kept: run.kept,
    n_mistakes: run.nMistakes,
    mistakes_per_pass: run.perPass,
    converged: run.converged,
    cycle: run.cycle,
    held_out: recipe.holdout ? run.scores : null,
    plane: planeOf(X, features, settings.bias, own),
    ...proven(run, machine, Z, codes, classes, settings, lab, X.length <= MOST_FOR_BOUNDS),
  };
}

/**
 * @param {Vector[]} X
 * @param {Vector[]} Z
 * @param {number[]} codes
 * @param {number} nClasses
 * @param {Settings} settings
 * @param {Vector[]} testX
 * @param {number[]} testCodes
 * @param {FeatureMap} map
 * @param {Lab} lab
 * @param {() => boolean} isCurrent
 */
async function trained(X, Z, codes, nClasses, settings, testX, testCodes, map, lab, isCurrent) {
  const { kernel, bias } = settings;
  const machine = kernel ? new KernelMachine(settings, nClasses, gramMatrix(kernel, X, bias)) : new LinearMachine(settings, nClasses, Z[0].length);
  const limits = { steps: lab.limits.steps, mistakes: kernel ? lab.limits.kernel_mistakes : Math.max(1, Math.floor(lab.limits.numbers / (Z[0].length * machineOutputs(nClasses)))) };
  const tests = kernel ? testX.map((x) => gramRow(kernel, X, x, bias)) : testX.map((x) => (bias ? [...mapFeatures(map, x), 1] : mapFeatures(map, x)));
  const accuracy = testX.length ? heldOutAccuracy(machine, tests, testCodes, settings, lab.learners[settings.learner].predicts) : null;
  const prove = () => (kernel ? "undecided" : certified(Z, codes, nClasses, bias, performance.now() + PATIENCE).verdict);
  const passes = training(machine, kernel ? null : Z, codes, settings, limits, { prove, accuracy });
  const end = performance.now() + LONGEST;
  for (let slice = performance.now() + SLICE; ;) {
    const { done, value } = passes.next();
    if (done) return { run: value, machine };
    if (performance.now() < slice) continue;
    if (performance.now() > end) throw new RecipeError(`training did not end within ${LONGEST / 1000} seconds, in ${value.toLocaleString("en")} passes: choose a number of passes`);
    await new Promise((resume) => setTimeout(resume));
    if (!isCurrent()) throw new Superseded();
    slice = performance.now() + SLICE;
  }
}

/** @param {number} nClasses */
function machineOutputs(nClasses) {
  return nClasses > 2 ? nClasses : 1;
}

/** @param {import("./types.js").Kernel} kernel @param {Vector[]} X @param {Vector} x @param {boolean} bias */
function gramRow(kernel, X, x, bias) {
  return gramMatrix(kernel, [x, ...X], bias)[0].slice(1);
}

/**
 * The recorded part of a run: steps and mistakes up to the first mistake that does not fit.
 * @param {Training} run
 * @param {Lab} lab
 * @param {Settings} settings
 */
function cut(run, lab, settings) {
  const k = run.mistakes.step.length;
  const whole = run.nMistakes === k;
  const nSteps = whole ? run.steps.length : Math.min(run.steps.length, (run.nextMistake ?? run.nSteps + 1) - 1);
  const steps = run.steps.slice(0, nSteps);
  return {
    path: settings.kernel ? null : run.path,
    lines: { steps, pass_starts: run.starts.filter((start) => start < steps.length), complete: steps.length === run.nSteps, n_steps: run.nSteps, mistakes: run.mistakes },
  };
}

/**
 * The lines of the proof, the theorems that apply, the certificate and the widest margin.
 * @param {Training} run
 * @param {LinearMachine | KernelMachine} machine
 * @param {Vector[]} Z
 * @param {number[]} codes
 * @param {import("./types.js").Label[]} classes
 * @param {Settings} settings
 * @param {Lab} lab
 * @param {boolean} withBounds
 */
function proven(run, machine, Z, codes, classes, settings, lab, withBounds) {
  const K = classes.length;
  if (settings.kernel) {
    return { R2: null, separator: null, proof: true, bounds: [], why_no_bound: "the margin in the kernel's space is not computed", certificate: null, max_margin: null };
  }
  const { theorem } = lab.rules[settings.rule];
  const hint = run.converged ? Array.from(/** @type {LinearMachine} */ (machine).w) : null;
  const certificate = certified(Z, codes, K, settings.bias, performance.now() + PATIENCE, hint);
  const isSeparable = certificate.verdict === "separable";
  const separator = certificate.separator && unitSeparator(certificate.separator, Z, codes, K);
  const examples = run.mistakes.step.map((step) => run.steps[step - 1]);
  const facts = { settings, theorem, Z, codes, nClasses: K, passes: run.perPass.length, nMistakes: run.nMistakes, errors: run.errors, mistakes: run.mistakes, examples, separator, start: Array.from(/** @type {LinearMachine} */ (machine).w), complete: run.nMistakes === examples.length };
  return {
    R2: largest(Z.map((z) => dot(z, z))) * (K > 2 ? 2 : 1),
    separator,
    proof: theorem === "perceptron",
    ...(withBounds ? boundsOf(facts) : { bounds: [], why_no_bound: "" }),
    certificate: certificatePart(certificate, classes),
    max_margin: isSeparable ? widestMargin(Z, codes, K, settings.bias, performance.now() + PATIENCE) : null,
  };
}
