// The plane of the picture: the two features themselves, (x, 1) for a single feature, or a projection of more.

import { dot } from "./maps.js";

/** @import { Plane, Vector } from "./types.js" */

const SWEEPS = 60;

/**
 * The orthonormal eigenvectors of a symmetric matrix, that of the largest eigenvalue first, by Jacobi's method.
 * @param {number[][]} matrix
 * @returns {{ value: number, vector: Vector }[]}
 */
export function principal(matrix) {
  const n = matrix.length;
  const A = matrix.map((row) => [...row]);
  /** @type {number[][]} */
  const V = matrix.map((_, i) => matrix.map((__, j) => (i === j ? 1 : 0)));
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    let off = 0;
    for (let p = 0; p < n; p += 1) {
      for (let q = p + 1; q < n; q += 1) {
        off += A[p][q] ** 2;
        if (A[p][q] === 0) continue;
        const theta = (A[q][q] - A[p][p]) / (2 * A[p][q]);
        const t = Math.sign(theta || 1) / (Math.abs(theta) + Math.sqrt(theta ** 2 + 1));
        const c = 1 / Math.sqrt(t ** 2 + 1);
        const s = t * c;
        for (let k = 0; k < n; k += 1) [A[k][p], A[k][q]] = [c * A[k][p] - s * A[k][q], s * A[k][p] + c * A[k][q]];
        for (let k = 0; k < n; k += 1) [A[p][k], A[q][k]] = [c * A[p][k] - s * A[q][k], s * A[p][k] + c * A[q][k]];
        for (let k = 0; k < n; k += 1) [V[k][p], V[k][q]] = [c * V[k][p] - s * V[k][q], s * V[k][p] + c * V[k][q]];
      }
    }
    if (off === 0) break;
  }
  const pairs = matrix.map((_, j) => ({ value: A[j][j], vector: V.map((row) => row[j]) }));
  return pairs.sort((a, b) => b.value - a.value);
}

/** @param {Vector[]} rows @returns {number[][]} Σ rᵀr */
function scatter(rows) {
  const d = rows[0].length;
  const sum = Array.from({ length: d }, () => new Array(d).fill(0));
  for (const row of rows) for (let i = 0; i < d; i += 1) for (let j = 0; j < d; j += 1) sum[i][j] += row[i] * row[j];
  return sum;
}

/** @param {Vector} v @returns {Vector} its length made 1 */
function unit(v) {
  const length = Math.sqrt(dot(v, v));
  return v.map((value) => value / length);
}

/**
 * Up to two orthonormal directions that span most of the final weights, less their mean.
 * @param {Vector[]} W the weights of each output, without biases
 */
function weightsSpan(W) {
  if (W.length === 1) return W[0].some((value) => value !== 0) ? [unit(W[0])] : [];
  const mean = W[0].map((_, j) => W.reduce((sum, w) => sum + w[j], 0) / W.length);
  const [first, ...others] = principal(scatter(W.map((w) => w.map((value, j) => value - mean[j]))));
  return [first, ...others].slice(0, 2).filter(({ value }) => value > 1e-18 * Math.max(first.value, 1e-300) && value > 0).map(({ vector }) => vector);
}

/**
 * Two orthonormal directions: the given ones, then principal directions of the rest of the data.
 * @param {Vector[]} directions
 * @param {Vector[]} centred
 */
function completed(directions, centred) {
  const out = [...directions];
  while (out.length < 2) {
    const rest = centred.map((x) => out.reduce((left, u) => { const part = dot(x, u); return left.map((value, j) => value - part * u[j]); }, x));
    out.push(principal(scatter(rest))[0].vector);
  }
  return out;
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
