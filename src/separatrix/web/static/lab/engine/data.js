// The examples of a recipe: a lecture's, a built-in set, drawn points, random points, or a CSV text.

import { readCsv } from "./csv.js";
import { RecipeError } from "./errors.js";
import { Generator } from "./generator.js";
import { asLabels } from "./labels.js";
import { checkData } from "./recipe.js";

/** @import { Examples, Lab, Label, Point, Recipe, Vector } from "./types.js" */

const HALF = 5; // random points lie in the square [−HALF, HALF]²
const TRIES = 400;

/**
 * @param {Recipe} recipe
 * @param {Lab} lab
 * @param {(name: string) => Promise<{ features: string[], labels: string[], X: Vector[] }>} readSet
 * @returns {Promise<Examples>}
 */
export async function examplesOf(recipe, lab, readSet) {
  const { data } = recipe;
  checkData(data, lab);
  if (data === "points") return drawn(recipe.points);
  if (data === "random") {
    const { X, labels } = randomSet(recipe.n, recipe.classes, recipe.gap, recipe.noise, recipe.seed);
    return { name: `${recipe.n} random points`, X, labels, features: null, bias: true, tie: "mistake" };
  }
  if (data === "csv") return readCsv(recipe.csv, recipe.file);
  const lecture = lab.lectures.find(({ name }) => `lecture:${name}` === data);
  if (lecture) return { name: data, X: lecture.points, labels: lecture.labels, features: null, bias: lecture.bias, tie: lecture.tie };
  const { features, labels, X } = await readSet(data);
  return { name: data, X, labels, features, bias: true, tie: "mistake" };
}

/** @param {Point[]} points @returns {Examples} */
function drawn(points) {
  if (!points.length) throw new RecipeError("there are no points yet: draw some");
  const labels = asLabels(points.map(([, , label]) => label));
  return { name: "drawn points", X: points.map(([x, y]) => [x, y]), labels, features: null, bias: true, tie: "mistake" };
}

/**
 * The examples with two classes: one, and all the others.
 * @param {Examples} examples
 * @param {string} positive
 * @returns {Examples}
 */
export function againstTheRest(examples, positive) {
  const chosen = examples.labels.map((label) => String(label) === positive);
  if (!chosen.includes(true)) throw new RecipeError(`${examples.name}: no example has the class '${positive}'`);
  return { ...examples, name: `${examples.name} (${positive} against the rest)`, labels: chosen.map((own) => (own ? positive : `not ${positive}`)) };
}

/** @param {number} value rounded to three digits after the point, halves to even, as NumPy rounds */
function rounded(value) {
  const scaled = value * 1000;
  const floor = Math.floor(scaled);
  const rest = scaled - floor;
  const whole = rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
  return whole / 1000;
}

/**
 * Points farther than `gap` from the true boundary; a share `noise` of the labels is wrong. The same points as `random_set` in Python.
 * @param {number} n
 * @param {number} classes
 * @param {number} gap
 * @param {number} noise
 * @param {number} seed
 * @returns {{ X: Vector[], labels: Label[] }}
 */
export function randomSet(n, classes, gap, noise, seed) {
  const random = new Generator([seed]);
  const turn = random.uniform(0, 2 * Math.PI);
  const angles = Array.from({ length: classes }, (_, k) => turn + (2 * Math.PI * k) / classes);
  const W = angles.map((angle) => [Math.cos(angle), Math.sin(angle)]);
  const b = random.uniform(-1, 1);
  const unit = classes === 2 ? 2 : Math.hypot(W[0][0] - W[1][0], W[0][1] - W[1][1]);
  /** @type {{ x: Vector, code: number }[]} */
  const accepted = [];
  for (let tries = 0; accepted.length < n; tries += 1) {
    if (tries === TRIES) throw new RecipeError(`a margin of ${gap} leaves no room for ${n} points: choose a smaller margin`);
    for (let i = 0; i < Math.max(n, 64); i += 1) {
      const x = [rounded(random.uniform(-HALF, HALF)), rounded(random.uniform(-HALF, HALF))];
      const scores = classes > 2 ? W.map((w) => x[0] * w[0] + x[1] * w[1]) : [-1, 1].map((sign) => (x[0] * W[0][0] + x[1] * W[0][1] + b) * sign);
      const [best, second] = [...scores].sort((one, other) => other - one);
      if ((best - second) / unit > gap) accepted.push({ x, code: scores.indexOf(best) });
    }
  }
  const chosen = accepted.slice(0, n);
  const codes = chosen.map(({ code }) => code);
  const flipped = codes.map(() => random.random() < noise).flatMap((wrong, i) => (wrong ? [i] : []));
  const shifts = random.integers(1, classes, flipped.length);
  flipped.forEach((i, k) => {
    codes[i] = (codes[i] + shifts[k]) % classes;
  });
  if (new Set(codes).size < 2) codes[0] = 1 - Math.min(codes[0], 1);
  const labels = codes.map((code) => (classes === 2 ? 2 * code - 1 : String.fromCharCode(65 + code)));
  return { X: chosen.map(({ x }) => x), labels };
}
