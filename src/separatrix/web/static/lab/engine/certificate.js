// Whether a linear classifier can get all examples right, proven with exact numbers: what Python's `certify` says.

import { decide } from "./decide.js";
import { firstWitness, firstWitnessWith } from "./first.js";
import { pairsOf, widestMargin } from "./margins.js";
import { nearestOf } from "./nearest.js";
import { fraction, orthogonalBasis, primitive, product, root, solved, toNumber, wholeVectors } from "./rationals.js";
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
  const proof = (/** @type {bigint[]} */ w) => {
    const least = vectors.reduce((low, vector) => { const lead = product(vector, w); return lead < low ? lead : low; }, product(vectors[0], w));
    return { w, least, square: fraction(least * least, product(w, w) << BigInt(2 * shift)) };
  };
  const better = (/** @type {ReturnType<typeof proof>} */ one, /** @type {ReturnType<typeof proof>} */ other) =>
    one.least > 0n && (other.least <= 0n || one.square.p * other.square.q >= other.square.p * one.square.q) ? one : other;
  let best = better(proof(wholeVectors([x]).whole[0]), proof(separator));
  const exact = corral.length <= MOST_EXACT ? exactNearest(corral.map(({ key }) => vectors[key])) : null;
  if (exact) best = better(proof(exact), best);
  const short = shortDirection(best.w);
  if (short) best = better(proof(short), best);
  const top = best.w.reduce((most, value) => { const size = value < 0n ? -value : value; return size > most ? size : most; }, 0n);
  const floats = top < 1n << 53n ? best.w.map(Number) : best.w.map((value) => toNumber(fraction(value, top)));
  const weights = wholeVectors([corral.map(({ weight }) => weight)]).whole[0];
  const sum = vectors[0].map((_, j) => corral.reduce((total, { key }, k) => total + weights[k] * vectors[key][j], 0n));
  const total = weights.reduce((one, other) => one + other, 0n);
  const upper = root(fraction(product(sum, sum), (total * total) << BigInt(2 * shift)), 1);
  const factor = nClasses === 2 ? 1n : 2n;
  const widest = bias && nClasses === 2 ? widestMargin(Z, codes, 2, true, deadline) : null;
  return {
    verdict: "separable",
    separation: "complete",
    direction: floats,
    separator: floats,
    margin: [root(best.square, -1), Math.max(upper, root(best.square, -1))],
    geometric: widest ? [widest.margin * (1 - 1e-14), widest.margin * (1 + 1e-14)] : nClasses === 2 ? [root(best.square, -1), upper] : null,
    mistakeBound: (factor * R2.p * best.square.q) / (R2.q * best.square.p),
  };
}

const MOST_EXACT = 12; // the nearest point of so many vertices at most is computed exactly

/**
 * The point of the affine hull of some vectors that is nearest to the origin, times a positive number.
 * @param {bigint[][]} vectors
 */
function exactNearest(vectors) {
  const weights = solved(vectors.map((a) => vectors.map((b) => product(a, b) + 1n)), vectors.map(() => 1n));
  return weights && primitive(vectors[0].map((_, j) => vectors.reduce((sum, vector, i) => sum + weights[i] * vector[j], 0n)));
}

/** @param {bigint[]} w @returns {bigint[] | null} small whole numbers in nearly the same direction, if there are any */
function shortDirection(w) {
  const top = w.reduce((most, value) => { const size = value < 0n ? -value : value; return size > most ? size : most; }, 0n);
  const shares = w.map((value) => toNumber(fraction(value, top)));
  for (let scale = 1; scale <= 12; scale += 1) {
    if (shares.every((share) => Math.abs(share * scale - Math.round(share * scale)) < 1e-9)) return shares.map((share) => BigInt(Math.round(share * scale)));
  }
  return null;
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
