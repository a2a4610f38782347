// Whether a linear classifier can get all examples right, proven with exact numbers: what Python's `certify` says.

import { decide } from "./decide.js";
import { firstWitness, firstWitnessWith } from "./first.js";
import { geometricInterval, marginInterval } from "./interval.js";
import { pairsOf } from "./margins.js";
import { nearestOf } from "./nearest.js";
import { fraction, orthogonalBasis, primitive, product, toNumber, wholeVectors } from "./rationals.js";
import { TimeUp } from "./simplex.js";

/** @import { Fraction } from "./rationals.js" */
/** @import { Weights } from "./simplex.js" */
/** @import { Vector } from "./types.js" */

/**
 * @typedef {{ row: number, rival: number, weight: Fraction }} WeightedPair
 * @typedef {{
 *   n: number, d: number, nClasses: number, bias: boolean, verdict: string, ties: string | null, separation: string | null,
 *   direction: number[] | null, margin: [number, number] | null, geometric: [number, number] | null,
 *   mistakeBound: bigint | null, radius: number, witness: WeightedPair[], separator: number[] | null,
 * }} Certificate
 */

/**
 * @param {Vector[]} Z examples, a 1 behind each if there is a bias
 * @param {number[]} codes
 * @param {number} nClasses
 * @param {boolean} bias
 * @param {number} deadline of performance.now(); what is not decided by then stays "undecided"
 * @param {readonly number[] | null} [hint] weights that may separate the examples
 * @returns {Certificate}
 */
export function certified(Z, codes, nClasses, bias, deadline, hint = null) {
  const pairs = pairsOf(Z, codes, nClasses);
  const { whole: vectors, shift } = wholeVectors(pairs.map(({ vector }) => vector));
  const { whole: rows, shift: rowShift } = wholeVectors(Z);
  const square = rows.reduce((most, row) => (product(row, row) > most ? product(row, row) : most), 0n);
  const R2 = fraction(square, 1n << BigInt(2 * rowShift));
  /** @type {Certificate} */
  const blank = {
    n: Z.length, d: Z[0].length - (bias ? 1 : 0), nClasses, bias, verdict: "undecided", ties: null, separation: null, direction: null,
    margin: null, geometric: null, mistakeBound: null, radius: Math.sqrt(toNumber(R2)), witness: [], separator: null,
  };
  try {
    const answer = decide(vectors, deadline, hint);
    if ("direction" in answer) return { ...blank, ...separable(Z, codes, nClasses, bias, vectors, shift, answer.direction, R2, deadline) };
    return { ...blank, ...notSeparable(pairs, codes, nClasses, bias, vectors, answer.witness, deadline) };
  } catch (problem) {
    if (problem instanceof TimeUp) return blank;
    throw problem;
  }
}

/**
 * @param {Vector[]} Z
 * @param {number[]} codes
 * @param {number} nClasses
 * @param {boolean} bias
 * @param {bigint[][]} vectors
 * @param {number} shift
 * @param {bigint[]} separator
 * @param {Fraction} R2
 * @param {number} deadline
 * @returns {Partial<Certificate>}
 */
function separable(Z, codes, nClasses, bias, vectors, shift, separator, R2, deadline) {
  const { x, corral } = nearestOf(pairsOf(Z, codes, nClasses).map(({ vector }) => vector), deadline);
  const { direction, floats, square, margin } = marginInterval(vectors, shift, x, corral, separator, deadline);
  const factor = nClasses === 2 ? 1n : 2n;
  return {
    verdict: "separable",
    separation: "complete",
    direction,
    separator: floats,
    margin,
    geometric: nClasses > 2 ? null : bias ? geometricInterval(Z, codes, deadline) : margin,
    mistakeBound: (factor * R2.p * square.q) / (R2.q * square.p),
  };
}

/**
 * Whether a witness on these pairs proves "inseparable", whatever a tie means. With a bias it always does; without one, pairs of a
 * single side may all have the lead 0 and still be right under a meaning of ties that favours them.
 * @param {{ row: number, rival: number }[]} pairs
 * @param {number[]} codes
 * @param {number} nClasses
 * @param {boolean} bias
 */
function isDecisive(pairs, codes, nClasses, bias) {
  const sides = new Set(pairs.map(({ row, rival }) => (nClasses === 2 ? codes[row] === 1 : rival > codes[row])));
  return bias || (nClasses === 2 ? sides.size === 2 : sides.has(false));
}

/**
 * @param {{ row: number, rival: number }[]} pairs
 * @param {number[]} codes
 * @param {number} nClasses
 * @param {boolean} bias
 * @param {bigint[][]} vectors
 * @param {Weights} found
 * @param {number} deadline
 * @returns {Partial<Certificate>}
 */
function notSeparable(pairs, codes, nClasses, bias, vectors, found, deadline) {
  const equations = nClasses === 2 ? vectors[0].length : vectors[0].length - vectors[0].length / nClasses; // one block is minus the sum of the others
  const first = firstWitness(vectors, equations, found, deadline);
  const face = climbed(vectors, first.map(({ at }) => at), deadline);
  const decisive = (/** @type {number[]} */ which) => isDecisive(which.map((i) => pairs[i]), codes, nClasses, bias);
  const weighted = (/** @type {Weights} */ parts) => {
    const total = parts.reduce((sum, { p }) => sum + p, 0n);
    return parts.map(({ at, p }) => ({ row: pairs[at].row, rival: pairs[at].rival, weight: fraction(p, total) })).sort((a, b) => a.row - b.row || a.rival - b.rival);
  };
  const separation = face.direction
    ? { separation: "quasi-complete", direction: face.direction.map((value) => Number(value)) }
    : { separation: "overlap" };
  const own = first.map(({ at }) => at);
  if (decisive(own)) return { verdict: "inseparable", witness: weighted(first), ...separation };
  const other = face.inside.find((i) => decisive([...own, i]));
  if (other !== undefined) {
    // The other side is in the face too, so some combination of the face's pairs balances this pair.
    const second = firstWitnessWith(vectors, equations, face.inside, other, deadline);
    if (!second) return {};
    return { verdict: "inseparable", witness: weighted(decisive(second.map(({ at }) => at)) ? second : together(first, second)), ...separation };
  }
  if (!face.direction) return {};
  const side = nClasses > 2 ? "first" : codes[pairs[own[0]].row] === 1 ? "+1" : "-1";
  return { verdict: "touching", ties: side, margin: [0, 0], witness: weighted(first), ...separation };
}

/**
 * Half of each of two witnesses: a witness on the pairs of both.
 * @param {Weights} one
 * @param {Weights} other
 */
function together(one, other) {
  const [first, second] = [one, other].map((parts) => parts.reduce((sum, { p }) => sum + p, 0n));
  const sum = new Map(one.map(({ at, p }) => [at, p * second]));
  for (const { at, p } of other) sum.set(at, (sum.get(at) ?? 0n) + p * first);
  return [...sum].map(([at, p]) => ({ at, p }));
}

/**
 * Facial reduction (Albert and Anderson 1984): the pairs on which every weakly separating w vanishes, and a w that is positive on
 * all others, if there are any. A witness forces ⟨w,a⟩ = 0 on its span; the search goes on among the w that vanish there.
 * @param {bigint[][]} vectors
 * @param {number[]} start
 * @param {number} deadline
 * @returns {{ inside: number[], direction: bigint[] | null }}
 */
function climbed(vectors, start, deadline) {
  let which = start;
  for (;;) {
    const normals = orthogonalBasis(which.map((i) => vectors[i]), vectors[0].length);
    const images = vectors.map((vector) => normals.map((normal) => product(normal, vector)));
    const outside = images.flatMap((image, i) => (image.some((value) => value !== 0n) ? [i] : []));
    const isOutside = new Set(outside);
    const inside = vectors.flatMap((_, i) => (isOutside.has(i) ? [] : [i]));
    if (!outside.length) return { inside, direction: null };
    const answer = decide(outside.map((i) => images[i]), deadline);
    if ("direction" in answer) {
      const { direction } = answer;
      return { inside, direction: primitive(vectors[0].map((_, j) => normals.reduce((sum, normal, t) => sum + direction[t] * normal[j], 0n))) };
    }
    which = [...which, ...answer.witness.map(({ at }) => outside[at])];
  }
}
