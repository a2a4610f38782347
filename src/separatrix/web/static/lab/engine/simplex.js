// The exact simplex method on whole numbers: λ ≥ 0 with Σλa = b, or a direction that shows that there is none (Farkas).

import { product } from "./rationals.js";

/**
 * @typedef {{ weights: { at: number, p: bigint }[], q: bigint } | { direction: bigint[] }} Answer weights p/q of the columns `at`
 */

export class TimeUp extends Error {}

/**
 * The first phase of the simplex method with Bland's rule. The inverse of the basis is kept as whole numbers over one
 * determinant, so that every division is exact (Edmonds 1967).
 * @param {readonly bigint[][]} columns
 * @param {readonly bigint[]} b
 * @param {number} deadline of performance.now()
 * @returns {Answer}
 */
export function feasible(columns, b, deadline) {
  const m = b.length;
  const flipped = b.map((value) => value < 0n); // the right-hand side must not be negative
  const column = (/** @type {number} */ q) => columns[q].map((value, i) => (flipped[i] ? -value : value));
  let inverse = b.map((value, i) => [...b.map((_, j) => (i === j ? 1n : 0n)), value < 0n ? -value : value]);
  let determinant = 1n;
  const basis = b.map((_, i) => columns.length + i); // numbers from columns.length on are artificial variables
  for (;;) {
    if (performance.now() > deadline) throw new TimeUp();
    const artificial = basis.flatMap((q, i) => (q >= columns.length ? [i] : []));
    const y = b.map((_, j) => artificial.reduce((sum, i) => sum + inverse[i][j], 0n));
    const signed = y.map((value, i) => (flipped[i] ? -value : value));
    if (artificial.every((i) => inverse[i][m] === 0n)) break;
    const entering = columns.findIndex((each) => product(each, signed) > 0n);
    if (entering < 0) return { direction: signed.map((value) => -value) };
    const image = inverse.map((row) => product(row, column(entering)));
    const leaving = image.reduce((best, value, i) => (value > 0n && (best < 0 || isLess(i, best, image, inverse, basis)) ? i : best), -1);
    const pivot = image[leaving];
    inverse = inverse.map((row, i) => (i === leaving ? row : row.map((value, j) => (value * pivot - inverse[leaving][j] * image[i]) / determinant)));
    determinant = pivot;
    basis[leaving] = entering;
  }
  const weights = basis.flatMap((q, i) => (q < columns.length && inverse[i][m] > 0n ? [{ at: q, p: inverse[i][m] }] : []));
  return { weights, q: determinant };
}

/**
 * Whether row i leaves the basis before row k: the smaller ratio, then the smaller number.
 * @param {number} i
 * @param {number} k
 * @param {bigint[]} image
 * @param {bigint[][]} inverse
 * @param {number[]} basis
 */
function isLess(i, k, image, inverse, basis) {
  const m = inverse.length;
  const [left, right] = [inverse[i][m] * image[k], inverse[k][m] * image[i]];
  return left < right || (left === right && basis[i] < basis[k]);
}
