// Feature maps and kernels: φ(x) and k(x, z), in the order of operations of reference.py's `dot`.

import { Twister } from "./twister.js";

/** @import { FeatureMap, Kernel, Recipe, Vector } from "./types.js" */

/**
 * ⟨a, b⟩, the products added from the first to the last.
 * @param {ArrayLike<number>} a
 * @param {ArrayLike<number>} b
 * @param {number} [offset] where the entries of `a` begin
 */
export function dot(a, b, offset = 0) {
  let sum = 0;
  for (let j = 0; j < b.length; j += 1) sum += a[offset + j] * b[j];
  return sum;
}

/**
 * The map of a recipe for examples with the given features.
 * @param {Recipe} recipe
 * @param {string[]} features
 * @returns {FeatureMap}
 */
export function mapOf(recipe, features) {
  if (recipe.learner === "kernel" || recipe.map === "none") return { kind: "none", names: features };
  const plain = features.map((name) => name.replaceAll(" ", "_"));
  if (recipe.map === "disc") return { kind: "disc", names: [...plain, "xᵀx", "BIAS"] };
  if (recipe.map === "fourier") {
    const random = new Twister(recipe.seed);
    const size = Math.sqrt(2 * recipe.gamma);
    const directions = features.map(() => Array.from({ length: recipe.components }, () => size * random.normal()));
    const phases = Array.from({ length: recipe.components }, () => random.uniform(0, 2 * Math.PI));
    return { kind: "fourier", names: phases.map((_, j) => `φ${j + 1}`), directions, phases };
  }
  const powers = products(features.length, Number(recipe.map.slice(-1)));
  const power = (/** @type {number} */ p, /** @type {number} */ j) => (p === 0 ? "" : p === 1 ? plain[j] : `${plain[j]}^${p}`);
  return { kind: "products", names: powers.map((each) => each.map(power).filter(Boolean).join(" ")), powers };
}

/**
 * The powers of each product of at most `degree` of d features, in scikit-learn's order.
 * @param {number} d
 * @param {number} degree
 */
function products(d, degree) {
  /** @type {number[][]} */
  let chosen = [[]];
  /** @type {number[][]} */
  const out = [];
  for (let size = 1; size <= degree; size += 1) {
    chosen = chosen.flatMap((each) => Array.from({ length: d }, (_, j) => j).filter((j) => j >= (each.at(-1) ?? 0)).map((j) => [...each, j]));
    out.push(...chosen.map((each) => Array.from({ length: d }, (_, j) => each.filter((other) => other === j).length)));
  }
  return out;
}

/**
 * φ(x).
 * @param {FeatureMap} map
 * @param {Vector} x
 * @returns {number[]}
 */
export function mapFeatures(map, x) {
  if (map.kind === "disc") return [...x, dot(x, x), 1];
  if (map.kind === "products") return /** @type {number[][]} */ (map.powers).map((powers) => product(powers, x));
  if (map.kind === "fourier") {
    const { phases, directions } = /** @type {{ phases: number[], directions: number[][] }} */ (map);
    const scale = Math.sqrt(2 / phases.length);
    return phases.map((phase, c) => {
      let angle = 0;
      for (let j = 0; j < x.length; j += 1) angle += x[j] * directions[j][c];
      return scale * Math.cos(angle + phase);
    });
  }
  return [...x];
}

/**
 * A product of features, the last feature multiplied to what there is of those before, as scikit-learn builds them.
 * @param {number[]} powers
 * @param {Vector} x
 */
function product(powers, x) {
  const factors = powers.flatMap((power, j) => new Array(power).fill(x[j]));
  return factors.reduceRight((value, factor) => value * factor);
}

/**
 * k(x, z).
 * @param {Kernel} kernel
 * @param {Vector} x
 * @param {Vector} z
 */
export function kernelValue(kernel, x, z) {
  if (kernel.kind === "rbf") {
    let distance = 0;
    for (let j = 0; j < x.length; j += 1) distance += (x[j] - z[j]) ** 2;
    return Math.exp(-kernel.gamma * distance);
  }
  const inner = dot(x, z);
  return kernel.kind === "poly" ? (kernel.gamma * inner + kernel.coef0) ** kernel.degree : inner;
}
