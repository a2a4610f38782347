// Principal directions: eigenvectors by Jacobi's method where a matrix is small, else by iteration on a few vectors.

import { Generator } from "./generator.js";
import { dot } from "./maps.js";

/** @import { Vector } from "./types.js" */
/** @typedef {{ value: number, vector: Vector }} Direction a unit vector, and the sum of the squares of its products with the rows */

const SWEEPS = 60;
const SMALL = 40; // the width of a matrix that Jacobi's method takes no time for
const VECTORS = 4; // how many are iterated
const ROUNDS = 40;

/**
 * The orthonormal eigenvectors of a symmetric matrix, that of the largest eigenvalue first, by Jacobi's method.
 * @param {number[][]} matrix
 * @returns {Direction[]}
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

/** @param {Vector[]} rows @returns {number[][]} the products of each with each */
function gram(rows) {
  return rows.map((a) => rows.map((b) => dot(a, b)));
}

/** @param {Vector[]} rows @returns {number[][]} Σ rᵀr */
function scatter(rows) {
  const d = rows[0].length;
  return gram(Array.from({ length: d }, (_, j) => rows.map((row) => row[j])));
}

/** @param {ArrayLike<number>} weights @param {Vector[]} rows @returns {number[]} Σ weight·row */
function mixed(weights, rows) {
  const out = new Array(rows[0].length).fill(0);
  rows.forEach((row, i) => {
    for (let j = 0; j < out.length; j += 1) out[j] += weights[i] * row[j];
  });
  return out;
}

/** @param {Vector} v @returns {Vector} its length made 1 */
export function unit(v) {
  const length = Math.sqrt(dot(v, v));
  return v.map((value) => value / length);
}

/** @param {Vector} x @param {Vector[]} directions orthonormal @returns {Vector} what of x is orthogonal to them */
export function without(x, directions) {
  return directions.reduce((left, u) => {
    const part = dot(x, u);
    return left.map((value, j) => value - part * u[j]);
  }, x);
}

/** @param {Vector[]} vectors @returns {Vector[]} an orthonormal basis of their span */
function orthonormal(vectors) {
  /** @type {Vector[]} */
  const out = [];
  for (const vector of vectors) {
    const left = without(without(vector, out), out); // twice, because the first time leaves rounding errors
    if (dot(left, left) > 1e-20 * dot(vector, vector)) out.push(unit(left));
  }
  return out;
}

/**
 * The principal directions of some rows, the largest first; at least the first two of those that are not 0.
 * @param {Vector[]} rows
 * @returns {Direction[]}
 */
export function mainDirections(rows) {
  const [n, d] = [rows.length, rows[0].length];
  if (d <= SMALL) return principal(scatter(rows));
  if (n <= SMALL) {
    const [first, ...others] = principal(gram(rows));
    return [first, ...others.filter(({ value }) => value > 1e-24 * first.value)].filter(({ value }) => value > 0).map(({ value, vector }) => ({ value, vector: unit(mixed(vector, rows)) }));
  }
  const random = new Generator([0]);
  let basis = orthonormal(Array.from({ length: VECTORS }, () => Array.from({ length: d }, () => random.random() - 0.5)));
  for (let round = 0; round < ROUNDS; round += 1) basis = orthonormal(basis.map((v) => mixed(rows.map((row) => dot(row, v)), rows)));
  if (!basis.length) return [];
  const images = basis.map((v) => rows.map((row) => dot(row, v)));
  return principal(gram(images)).map(({ value, vector }) => ({ value, vector: mixed(vector, basis) }));
}
