// The mistake bounds that apply to a run (L1 10, L2 7–8, L4 6, L5 4): what Python's `analysis/bounds.py` reports.

import { largest } from "./extremes.js";
import { dot } from "./maps.js";
import { highestWrong } from "./machine.js";

/** @import { Bound, Mistakes, Separator, Settings, Vector } from "./types.js" */

/**
 * @typedef {{
 *   settings: Settings, theorem: string, Z: Vector[], codes: number[], nClasses: number, passes: number, nMistakes: number, errors: number,
 *   mistakes: Mistakes, examples: number[], separator: Separator | null, start: number[], complete: boolean,
 * }} Facts
 */

/**
 * @param {Facts} facts
 * @returns {{ bounds: Bound[], why_no_bound: string }}
 */
export function boundsOf(facts) {
  const { settings, theorem, Z, nClasses, separator, passes } = facts;
  if (!theorem) return { bounds: [], why_no_bound: `none is known for rule='${settings.rule}' that can be evaluated on the data` };
  const joint = nClasses > 2;
  const R2 = largest(Z.map((z) => dot(z, z))) * (joint ? 2 : 1);
  /** @type {[string, number][]} */
  const possible = [];
  if (separator) {
    const inverse = 1 / separator.gamma ** 2;
    const { C, margin } = settings;
    if (theorem === "perceptron") possible.push([joint ? "radius–margin bound 2R²/γ², K classes jointly" : "radius–margin bound R²/γ²", R2 * inverse]);
    if (theorem === "margin") possible.push(["margin rule (R²+2β)/γ²", (R2 + 2 * margin) * inverse]);
    if (theorem === "pa") possible.push(["passive-aggressive R²/γ²", R2 * inverse]);
    if (theorem === "pa1") possible.push(["PA-I max(R², 1/C)/γ²", Math.max(R2, 1 / C) * inverse]);
    if (theorem === "pa2") possible.push(["PA-II (R² + 1/2C)/γ²", (R2 + 0.5 / C) * inverse]);
  }
  if (theorem === "perceptron" && settings.order !== "random") {
    possible.push([`Freund–Schapire (R‖v‖ + ‖hinge‖)², ${passes === 1 ? "one pass" : `${passes} passes`}`, smallestShortfall(facts, Math.sqrt(R2))]);
  }
  const [quantity, made] = measured(facts);
  const bounds = possible.map(([name, bound]) => ({ theorem: name, quantity, made, possible: bound })).sort((a, b) => a.possible - b.possible);
  const why = theorem === "perceptron"
    ? "the data are not separable, and examples have weights or were drawn with replacement"
    : "the data are not separable, or each class is learned against the rest";
  return { bounds: facts.complete ? bounds : [], why_no_bound: bounds.length ? "" : why };
}

/** @param {Facts} facts @returns {[string, number]} the quantity that the theorem bounds, and its value in the run */
function measured({ theorem, settings, mistakes, examples, Z, nClasses, nMistakes, errors }) {
  if (theorem === "pa1") return ["errors", errors];
  if (theorem !== "pa" && theorem !== "pa2") return [theorem === "margin" ? "updates" : "mistakes", nMistakes];
  const slack = theorem === "pa2" ? 0.5 / settings.C : 0;
  const losses = examples.map((i, m) => /** @type {number[]} */ (mistakes.by)[m] * (dot(Z[i], Z[i]) * (nClasses > 2 ? 2 : 1) + slack));
  return ["Σℓ²", dot(losses, losses)];
}

/**
 * The smallest bound of Freund and Schapire (1999) that a search finds: min (R‖v‖ + √T‖h(v)‖)², h = max(0, 1 − lead). It holds for
 * every v, so an imperfect search still gives a bound.
 * @param {Facts} facts
 * @param {number} R
 */
function smallestShortfall({ Z, codes, nClasses, passes, separator, start: last }, R) {
  const K = nClasses > 2 ? nClasses : 1;
  const m = Z[0].length;
  const scale = Array.from({ length: K * m }, (_, j) => 1 / (Math.sqrt(Z.reduce((sum, z) => sum + z[j % m] ** 2, 0) / Z.length) || 1));
  /** The objective with corners of the norms smoothed, and its gradient. */
  const objective = (/** @type {number[]} */ v, corner = 0) => {
    const gradient = new Array(K * m).fill(0);
    let square = 0;
    Z.forEach((z, i) => {
      const scores = Array.from({ length: K }, (_, k) => dot(v, z, k * m));
      const rival = K > 1 ? highestWrong(codes[i], scores) : 0;
      const h = 1 - (K > 1 ? scores[codes[i]] - scores[rival] : (2 * codes[i] - 1) * scores[0]);
      if (h <= 0) return;
      square += h * h;
      for (let j = 0; j < m; j += 1) {
        if (K === 1) gradient[j] -= (2 * codes[i] - 1) * h * z[j];
        else {
          gradient[codes[i] * m + j] -= h * z[j];
          gradient[rival * m + j] += h * z[j];
        }
      }
    });
    const [length, shortfall] = [Math.sqrt(dot(v, v) + corner ** 2), Math.sqrt(square + corner ** 2)];
    const value = R * length + Math.sqrt(passes) * shortfall;
    return { value, gradient: gradient.map((slope, j) => (R * v[j]) / (length || 1) + (Math.sqrt(passes) * slope) / (shortfall || 1)) };
  };
  const zero = new Array(K * m).fill(0);
  const scales = Array.from({ length: 40 }, (_, k) => 2 ** (8 - k));
  const scaled = scales.map((factor) => last.map((value) => factor * value)).reduce((one, other) => (objective(other).value < objective(one).value ? other : one));
  const starts = separator ? [zero, scaled, separator.u.map((value) => value / separator.gamma)] : [zero, scaled];
  let best = starts.reduce((one, other) => (objective(other).value < objective(one).value ? other : one));
  let least = objective(best).value;
  for (const start of starts.slice(1)) {
    let z = start.map((value, j) => value / scale[j]);
    for (const corner of [1e-2, 1e-5]) {
      z = descended(z, (point) => {
        const { value, gradient } = objective(point.map((each, j) => each * scale[j]), corner);
        return { value, gradient: gradient.map((slope, j) => slope * scale[j]) };
      });
      const v = z.map((value, j) => value * scale[j]);
      if (objective(v).value < least) [best, least] = [v, objective(v).value];
    }
  }
  return least ** 2 * (1 + 1e-12);
}

/**
 * Limited-memory BFGS with a backtracking line search.
 * @param {number[]} start
 * @param {(x: number[]) => { value: number, gradient: number[] }} f
 */
function descended(start, f) {
  let x = start;
  let now = f(x);
  /** @type {{ s: number[], y: number[], rho: number }[]} */
  let memory = [];
  for (let step = 0; step < 100; step += 1) {
    let direction = now.gradient.map((value) => -value);
    const alphas = [...memory].reverse().map(({ s, y, rho }) => {
      const alpha = rho * dot(s, direction);
      direction = direction.map((value, j) => value - alpha * y[j]);
      return alpha;
    });
    const newest = memory.at(-1);
    const size = newest ? 1 / (newest.rho * dot(newest.y, newest.y)) : 1 / (1 + Math.sqrt(dot(now.gradient, now.gradient)));
    direction = direction.map((value) => value * size);
    memory.forEach(({ s, y, rho }, k) => {
      const beta = rho * dot(y, direction);
      direction = direction.map((value, j) => value + (alphas[memory.length - 1 - k] - beta) * s[j]);
    });
    const slope = dot(now.gradient, direction);
    if (!(slope < 0)) break;
    let length = 1;
    let moved = x;
    let next = now;
    for (; length > 1e-12; length /= 2) {
      moved = x.map((value, j) => value + length * direction[j]);
      next = f(moved);
      if (next.value <= now.value + 1e-4 * length * slope) break;
    }
    if (!(next.value < now.value)) break;
    const s = moved.map((value, j) => value - x[j]);
    const y = next.gradient.map((value, j) => value - now.gradient[j]);
    const curvature = dot(s, y);
    if (curvature > 1e-12 * dot(y, y)) memory = [...memory, { s, y, rho: 1 / curvature }].slice(-10);
    const gained = now.value - next.value;
    [x, now] = [moved, next];
    if (gained <= 1e-13 * Math.abs(now.value)) break;
  }
  return x;
}
