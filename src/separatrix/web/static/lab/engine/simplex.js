// The exact simplex method on whole numbers: λ ≥ 0 with Σλa = b, or a direction that shows that there is none (Farkas).

import { product } from "./rationals.js";

/**
 * @typedef {{ at: number, p: bigint }[]} Weights of the columns `at`, each over a common denominator
 * @typedef {{ weights: Weights, q: bigint } | { direction: bigint[] }} Answer weights p/q
 */

export class TimeUp extends Error {}

/**
 * The inverse of a basis and the solution, kept as whole numbers over one determinant, so that every division is exact
 * (Edmonds 1967). Numbers from `columns.length` on are artificial variables, one for each equation.
 */
export class Tableau {
  /**
   * @param {readonly bigint[][]} columns
   * @param {readonly bigint[]} b
   */
  constructor(columns, b) {
    this.columns = columns;
    this.height = b.length;
    this.signs = b.map((value) => (value < 0n ? -1n : 1n)); // the right-hand side must not be negative
    /** @type {bigint[][]} */
    this.inverse = b.map((_, i) => b.map((__, j) => (i === j ? this.signs[i] : 0n)));
    this.right = b.map((value, i) => this.signs[i] * value);
    this.basis = b.map((_, i) => columns.length + i);
    this.determinant = 1n;
  }

  /** @param {number} i */
  isArtificial(i) {
    return this.basis[i] >= this.columns.length;
  }

  /** @param {number} j the coefficients of column j, times the determinant */
  image(j) {
    return this.inverse.map((row) => product(row, this.columns[j]));
  }

  /**
   * The row that leaves the basis: the smallest ratio, then the smallest number (Bland's rule).
   * @param {bigint[]} image
   */
  leaving(image) {
    const isBefore = (/** @type {number} */ i, /** @type {number} */ k) => {
      const [left, right] = [this.right[i] * image[k], this.right[k] * image[i]];
      return left < right || (left === right && this.basis[i] < this.basis[k]);
    };
    return image.reduce((best, value, i) => (value > 0n && (best < 0 || isBefore(i, best)) ? i : best), -1);
  }

  /**
   * Put column j, whose coefficients are given, in the place of the variable that leaves.
   * @param {number} j
   * @param {number} leaving
   * @param {bigint[]} image
   */
  enter(j, leaving, image) {
    const pivot = image[leaving];
    const sign = pivot < 0n ? -1n : 1n; // the determinant stays positive
    const [row, right] = [this.inverse[leaving], this.right[leaving]];
    const exchanged = (/** @type {bigint} */ value, /** @type {bigint} */ factor, /** @type {bigint} */ other) => (sign * (value * pivot - factor * other)) / this.determinant;
    this.right = this.right.map((value, i) => (i === leaving ? sign * value : exchanged(value, image[i], right)));
    this.inverse = this.inverse.map((each, i) => each.map((value, k) => (i === leaving ? sign * value : exchanged(value, image[i], row[k]))));
    this.determinant = sign * pivot;
    this.basis[leaving] = j;
  }

  /** @returns {Weights} the solution, without its artificial variables */
  weights() {
    return this.basis.flatMap((at, i) => (!this.isArtificial(i) && this.right[i] > 0n ? [{ at, p: this.right[i] }] : []));
  }
}

/**
 * The first phase of the simplex method with Bland's rule.
 * @param {readonly bigint[][]} columns
 * @param {readonly bigint[]} b
 * @param {number} deadline of performance.now()
 * @returns {Answer}
 */
export function feasible(columns, b, deadline) {
  const tableau = new Tableau(columns, b);
  for (;;) {
    if (performance.now() > deadline) throw new TimeUp();
    const artificial = tableau.basis.flatMap((_, i) => (tableau.isArtificial(i) ? [i] : []));
    if (artificial.every((i) => tableau.right[i] === 0n)) return { weights: tableau.weights(), q: tableau.determinant };
    const y = b.map((_, j) => artificial.reduce((sum, i) => sum + tableau.inverse[i][j], 0n));
    const entering = columns.findIndex((column) => product(column, y) > 0n);
    if (entering < 0) return { direction: y.map((value) => -value) };
    const image = tableau.image(entering);
    tableau.enter(entering, tableau.leaving(image), image);
  }
}
