// Gordan's alternative, decided exactly: a w with ⟨w,a⟩ > 0 for every a, or weights λ > 0 on a few a with Σλa = 0.

import { largest } from "./extremes.js";
import { nearestOf } from "./nearest.js";
import { product, wholeVectors } from "./rationals.js";
import { feasible } from "./simplex.js";

/**
 * @typedef {{ direction: bigint[] } | { witness: { at: number, p: bigint }[], q: bigint }} Decision
 */

const FIRST = 40; // the exact method begins with so many vectors beyond those of the nearest point
const MORE = 20; // and takes so many more that its direction violates

/** @param {bigint} value as a float, with its 60 leading bits */
function leading(value, shift = 0) {
  return shift > 0 ? Number(value >> BigInt(shift)) : Number(value);
}

/**
 * @param {readonly bigint[][]} vectors
 * @param {number} deadline of performance.now()
 * @param {readonly number[] | null} [hint] a direction to try first
 * @returns {Decision}
 */
export function decide(vectors, deadline, hint = null) {
  if (hint) {
    const direction = wholeVectors([hint]).whole[0];
    if (vectors.every((vector) => product(vector, direction) > 0n)) return { direction };
  }
  const zero = vectors.findIndex((vector) => vector.every((value) => value === 0n));
  if (zero >= 0) return { witness: [{ at: zero, p: 1n }], q: 1n };
  // Floating point finds the candidates, in coordinates of about size 1: columns are scaled by powers of two, rows to length 1.
  const bits = largest(vectors.map((vector) => largest(vector.map((value) => (value < 0n ? -value : value).toString(16).length)))) * 4;
  const shift = Math.max(0, bits - 900);
  const floats = vectors.map((vector) => vector.map((value) => leading(value, shift)));
  const scales = floats[0].map((_, j) => 2 ** -Math.ceil(Math.log2(floats.reduce((most, row) => Math.max(most, Math.abs(row[j])), 0) || 1)));
  const rows = floats.map((row) => {
    const scaled = row.map((value, j) => value * scales[j]);
    const length = Math.hypot(...scaled) || 1;
    return scaled.map((value) => value / length);
  });
  const { x, corral } = nearestOf(rows, deadline);
  const found = wholeVectors([x.map((value, j) => value * scales[j])]).whole[0];
  if (vectors.every((vector) => product(vector, found) > 0n)) return { direction: found };
  const leads = rows.map((row) => row.reduce((sum, value, j) => sum + value * x[j], 0));
  const lowest = leads.map((_, i) => i).sort((a, b) => leads[a] - leads[b]);
  return exactly(vectors, [...new Set([...corral.map(({ key }) => key), ...lowest.slice(0, FIRST)])], deadline);
}

/**
 * The exact method on some of the vectors, and on more as long as its direction is not positive on all.
 * @param {readonly bigint[][]} vectors
 * @param {number[]} start
 * @param {number} deadline
 * @returns {Decision}
 */
function exactly(vectors, start, deadline) {
  const chosen = [...start];
  const b = [...vectors[0].map(() => 0n), 1n];
  for (;;) {
    const answer = feasible(chosen.map((i) => [...vectors[i], 1n]), b, deadline);
    if ("weights" in answer) return { witness: answer.weights.map(({ at, p }) => ({ at: chosen[at], p })), q: answer.q };
    const direction = answer.direction.slice(0, -1);
    const wrong = vectors.flatMap((vector, i) => (product(vector, direction) > 0n ? [] : [i])).filter((i) => !chosen.includes(i));
    if (!wrong.length) return { direction };
    chosen.push(...wrong.slice(0, MORE));
  }
}
