// The widest margins: of separators through the origin of x̃, where the theorems live, and with a bias that costs nothing.

import { largest, smallest } from "./extremes.js";
import { dot } from "./maps.js";
import { highestWrong } from "./machine.js";
import { nearestOf, nearestPoint } from "./nearest.js";

/** @import { Separator, Vector, WidestMargin } from "./types.js" */

/**
 * The pairs of an example and a rival class: yx̃ for two classes; for K classes x̃ in the block of its own class and −x̃ in the rival's.
 * @param {Vector[]} Z the examples x̃
 * @param {number[]} codes
 * @param {number} nClasses
 * @returns {{ row: number, rival: number, vector: Float64Array }[]}
 */
export function pairsOf(Z, codes, nClasses) {
  if (nClasses === 2) {
    return Z.map((z, row) => ({ row, rival: 1 - codes[row], vector: Float64Array.from(z, (value) => (codes[row] === 1 ? value : -value)) }));
  }
  const m = Z[0].length;
  return Z.flatMap((z, row) => Array.from({ length: nClasses }, (_, rival) => rival).filter((rival) => rival !== codes[row]).map((rival) => {
    const vector = new Float64Array(nClasses * m);
    vector.set(z, codes[row] * m);
    vector.set(z.map((value) => -value), rival * m);
    return { row, rival, vector };
  }));
}

/**
 * The smallest y·score, or lead of the true class, over the examples.
 * @param {ArrayLike<number>} w
 * @param {Vector[]} Z
 * @param {number[]} codes
 * @param {number} nClasses
 */
export function leastLead(w, Z, codes, nClasses) {
  let least = Infinity;
  Z.forEach((z, i) => {
    if (nClasses === 2) least = Math.min(least, (codes[i] === 1 ? 1 : -1) * dot(w, z));
    else {
      const scores = Array.from({ length: nClasses }, (_, k) => dot(w, z, k * z.length));
      least = Math.min(least, scores[codes[i]] - scores[highestWrong(codes[i], scores)]);
    }
  });
  return least;
}

/**
 * A separator scaled to length 1, with its margin γ in the space of x̃; null if it does not separate the examples.
 * @param {readonly number[]} w
 * @param {Vector[]} Z
 * @param {number[]} codes
 * @param {number} nClasses
 * @returns {Separator | null}
 */
export function unitSeparator(w, Z, codes, nClasses) {
  const length = Math.sqrt(dot(w, w));
  const u = w.map((value) => value / length);
  const radius = Math.sqrt(largest(Z.map((z) => dot(z, z))) + 1);
  const gamma = leastLead(u, Z, codes, nClasses) - 4 * (Z[0].length + 2) * Number.EPSILON * radius; // less a bound on the rounding
  return gamma > 0 ? { u, gamma } : null;
}

/**
 * The separator of largest margin whose bias costs nothing, scaled so that the smallest lead is 1.
 * @param {Vector[]} Z examples, the last entry of each a 1 if there is a bias
 * @param {number[]} codes
 * @param {number} nClasses
 * @param {boolean} bias
 * @param {number} [deadline]
 * @returns {WidestMargin | null}
 */
export function widestMargin(Z, codes, nClasses, bias, deadline) {
  const m = Z[0].length;
  if (bias && nClasses === 2) return betweenHulls(Z, codes, deadline);
  const far = bias ? 300 * Math.sqrt(largest(Z.map((z) => dot(z, z)))) : 1; // so large a feature that its weight costs next to nothing
  const stretched = bias ? Z.map((z) => [...z.slice(0, -1), far]) : Z;
  const pairs = pairsOf(stretched, codes, nClasses);
  const { x, corral } = nearestOf(pairs.map(({ vector }) => vector), deadline);
  const w = x.map((value, j) => (bias && j % m === m - 1 ? value * far : value));
  const rows = new Set(corral.map(({ key }) => pairs[key].row));
  return scaled(w, Z, codes, nClasses, bias, [...rows].sort((a, b) => a - b));
}

/**
 * The shortest difference between points of the hulls of two classes; the vertex i·n + j is the difference of the examples i and j.
 * @param {Vector[]} X
 * @param {number[]} codes
 * @param {number} [deadline]
 */
export function shortestDifference(X, codes, deadline) {
  const members = [0, 1].map((c) => codes.flatMap((code, i) => (code === c ? [i] : [])));
  const difference = (/** @type {number} */ i, /** @type {number} */ j) => ({ key: i * X.length + j, vector: X[i].map((value, d) => value - X[j][d]) });
  const extreme = (/** @type {number[]} */ rows, /** @type {number[]} */ x, /** @type {number} */ sign) =>
    rows.reduce((best, i) => (sign * dot(X[i], x) < sign * dot(X[best], x) ? i : best), rows[0]);
  return nearestPoint(difference(members[1][0], members[0][0]), (p) => difference(extreme(members[1], p, 1), extreme(members[0], p, -1)), deadline);
}

/**
 * Two classes with a free bias.
 * @param {Vector[]} Z
 * @param {number[]} codes
 * @param {number} [deadline]
 */
function betweenHulls(Z, codes, deadline) {
  const X = Z.map((z) => z.slice(0, -1));
  const { x, corral } = shortestDifference(X, codes, deadline);
  const projections = [0, 1].map((c) => X.filter((_, i) => codes[i] === c).map((row) => dot(row, x)));
  const [high, low] = [largest(projections[0]), smallest(projections[1])];
  const rows = new Set(corral.flatMap(({ key }) => [Math.floor(key / Z.length), key % Z.length]));
  return scaled([...x, -(low + high) / 2], Z, codes, 2, true, [...rows].sort((a, b) => a - b));
}

/**
 * @param {number[]} w
 * @param {Vector[]} Z
 * @param {number[]} codes
 * @param {number} nClasses
 * @param {boolean} bias
 * @param {number[]} support
 * @returns {WidestMargin | null} null where the weights do not separate the examples
 */
function scaled(w, Z, codes, nClasses, bias, support) {
  const m = Z[0].length;
  const least = leastLead(w, Z, codes, nClasses);
  if (!(least > 0)) return null;
  const unit = w.map((value) => value / least);
  const length = Math.sqrt(unit.reduce((sum, value, j) => (bias && j % m === m - 1 ? sum : sum + value * value), 0));
  return { w: unit, support, margin: 1 / length };
}
