// The plane of the picture: the two features themselves, (x, 1) for a single feature, or a projection of more.

import { mainDirections, unit, without } from "./directions.js";
import { smallest } from "./extremes.js";
import { dot } from "./maps.js";

/** @import { Plane, Vector } from "./types.js" */

/**
 * Up to two orthonormal directions that span most of the final weights, less their mean.
 * @param {Vector[]} W the weights of each output, without biases
 */
function weightsSpan(W) {
  if (W.length === 1) return W[0].some((value) => value !== 0) ? [unit(W[0])] : [];
  const mean = W[0].map((_, j) => W.reduce((sum, w) => sum + w[j], 0) / W.length);
  const [first, ...others] = mainDirections(W.map((w) => w.map((value, j) => value - mean[j])));
  return [first, ...others].slice(0, 2).filter((direction) => direction !== undefined).filter(({ value }) => value > 1e-18 * Math.max(first.value, 1e-300) && value > 0).map(({ vector }) => vector);
}

/**
 * Two orthonormal directions: the given ones, then principal directions of the rest of the data; where no rest is left, any other.
 * @param {Vector[]} directions
 * @param {Vector[]} centred
 */
function completed(directions, centred) {
  const out = [...directions];
  const size = centred.reduce((sum, x) => sum + dot(x, x), 0);
  while (out.length < 2) {
    const [first] = mainDirections(centred.map((x) => without(x, out)));
    const isRest = first !== undefined && first.value > 1e-24 * size;
    out.push(unit(without(isRest ? first.vector : farthestAxis(out, centred[0].length), out)));
  }
  return out;
}

/** @param {Vector[]} directions @param {number} d @returns {Vector} the axis that has the least in common with the directions */
function farthestAxis(directions, d) {
  const shares = Array.from({ length: d }, (_, j) => directions.reduce((sum, u) => sum + u[j] ** 2, 0));
  const chosen = shares.indexOf(smallest(shares));
  return shares.map((_, j) => Number(j === chosen));
}

/**
 * @param {Vector[]} X
 * @param {string[]} names
 * @param {boolean} bias
 * @param {Vector[] | null} last the final weights of each output for the features themselves, bias last if there is one
 * @returns {Plane}
 */
export function planeOf(X, names, bias, last) {
  const d = X[0].length;
  const origin = (/** @type {number} */ n) => new Array(n).fill(0);
  if (d === 2) return { kind: "features", origin: origin(2), across: [[1, 0], [0, 1]], axes: names, note: "" };
  if (d === 1 && last && bias) return { kind: "augmented", origin: [0], across: [[1], [0]], axes: [names[0], "constant 1"], note: "x̃ = (x, 1): the bias is the second weight." };
  if (d === 1) return { kind: "features", origin: [0], across: [[1], [0]], axes: [names[0], ""], note: "" };
  const centre = names.map((_, j) => X.reduce((sum, x) => sum + x[j], 0) / X.length);
  const directions = last ? weightsSpan(last.map((w) => w.slice(0, d))) : [];
  const across = completed(directions, X.map((x) => x.map((value, j) => value - centre[j])));
  const [axes, basis] = axisNames(directions.length);
  return { kind: "projection", origin: centre, across, axes, note: `${d} features, projected onto ${basis}. A boundary is drawn where it cuts this plane.` };
}

/** @param {number} n how many directions come from the weights @returns {[string[], string]} */
function axisNames(n) {
  if (n === 0) return [["first principal direction", "second principal direction"], "their two principal directions"];
  if (n === 1) return [["along w", "principal direction orthogonal to w"], "the last w and the principal direction orthogonal to it"];
  return [["first direction of the weights", "second direction"], "the two principal directions of the last weights"];
}
