// The interval of the margin: of a separator below, of a point of the hull above; where both are exact, it is one number.

import { exactNearest } from "./exactpoint.js";
import { shortestDifference } from "./margins.js";
import { fraction, primitive, product, root, toNumber, wholeVectors } from "./rationals.js";

/** @import { Nearest } from "./nearest.js" */
/** @import { Fraction } from "./rationals.js" */
/** @import { Vector } from "./types.js" */

const EXACT_FOR = 300; // the time, in milliseconds, in which a margin is narrowed exactly

/**
 * The best separator, its margin from both sides, and the square of its margin.
 * @param {bigint[][]} vectors
 * @param {number} shift the vectors are times 2^shift
 * @param {number[]} x the nearest point of the hull, as far as floating point can tell
 * @param {Nearest["corral"]} corral
 * @param {bigint[]} separator the one that decided
 * @param {number} deadline of performance.now()
 * @returns {{ direction: number[], floats: number[], square: Fraction, margin: [number, number] }} `direction` as the certificate shows it
 */
export function marginInterval(vectors, shift, x, corral, separator, deadline) {
  const exact = exactNearest(corral.map(({ key }) => key), (i) => vectors[i], (sum) => lowestOf(vectors, sum), Math.min(deadline, performance.now() + EXACT_FOR));
  const { w, square, direction } = exact ? exactMargin(vectors, shift, primitive(exact.sum)) : roundedMargin(vectors, shift, x, separator);
  const weights = exact?.weights ?? wholeVectors([corral.map(({ weight }) => weight)]).whole[0];
  const upper = root(squareOf(exact?.keys ?? corral.map(({ key }) => key), weights, (i) => vectors[i], shift), 1);
  const lower = root(square, -1);
  return { direction: direction ?? floatsOf(w), floats: floatsOf(w), square, margin: [lower, Math.max(upper, lower)] };
}

/**
 * The margin of two classes with a bias that costs nothing: half of the shortest distance of their hulls, which the leads of ±1 meet.
 * @param {Vector[]} Z
 * @param {number[]} codes
 * @param {number} deadline
 * @returns {[number, number]}
 */
export function geometricInterval(Z, codes, deadline) {
  const X = Z.map((z) => z.slice(0, -1));
  const { x, corral } = shortestDifference(X, codes, deadline);
  const { whole, shift } = wholeVectors(X);
  const sides = [0, 1].map((c) => codes.flatMap((code, i) => (code === c ? [i] : [])));
  const n = Z.length;
  const difference = (/** @type {number} */ key) => whole[Math.floor(key / n)].map((value, j) => value - whole[key % n][j]);
  const lowest = (/** @type {bigint[]} */ sum) => {
    const [high, low] = [lowestOf(sides[0].map((i) => whole[i]), sum.map((value) => -value)), lowestOf(sides[1].map((i) => whole[i]), sum)];
    return sides[1][low] * n + sides[0][high];
  };
  const exact = exactNearest(corral.map(({ key }) => key), difference, lowest, Math.min(deadline, performance.now() + EXACT_FOR));
  if (!exact) {
    const half = Math.hypot(...x) / 2;
    return [half * (1 - 1e-14), half * (1 + 1e-14)];
  }
  const square = squareOf(exact.keys, exact.weights, difference, shift + 1);
  return [root(square, -1), root(square, 1)];
}

/**
 * A separator in whole numbers with its smallest lead, and the square of its margin.
 * @param {readonly bigint[][]} vectors
 * @param {number} shift the vectors are times 2^shift
 * @param {bigint[]} w
 */
function marginOf(vectors, shift, w) {
  const least = vectors.reduce((low, vector) => { const lead = product(vector, w); return lead < low ? lead : low; }, product(vectors[0], w));
  return { w, least, square: fraction(least * least, product(w, w) << BigInt(2 * shift)) };
}

/** @param {bigint[]} w @returns {number[]} whole numbers where they are floats, else shares of the largest */
function floatsOf(w) {
  const top = largest(w);
  return top < 1n << 53n ? w.map(Number) : w.map((value) => toNumber(fraction(value, top)));
}

/** @param {bigint[]} w */
function largest(w) {
  return w.reduce((most, value) => { const size = value < 0n ? -value : value; return size > most ? size : most; }, 0n);
}

/** @param {readonly bigint[][]} vectors @param {bigint[]} w the vector with the smallest product */
function lowestOf(vectors, w) {
  let [best, least] = [0, product(vectors[0], w)];
  vectors.forEach((vector, i) => {
    const value = product(vector, w);
    if (value < least) [best, least] = [i, value];
  });
  return best;
}

/**
 * The square of the length of a weighted mean of vectors.
 * @param {number[]} keys
 * @param {bigint[]} weights
 * @param {(key: number) => bigint[]} vectorOf
 * @param {number} shift
 */
function squareOf(keys, weights, vectorOf, shift) {
  const sum = vectorOf(keys[0]).map((_, j) => keys.reduce((part, key, k) => part + weights[k] * vectorOf(key)[j], 0n));
  const total = weights.reduce((one, other) => one + other, 0n);
  return fraction(product(sum, sum), (total * total) << BigInt(2 * shift));
}

/**
 * The margin of the exact separator w, or of w rounded to floats where that is as good to twelve digits.
 * @param {bigint[][]} vectors
 * @param {number} shift
 * @param {bigint[]} w
 * @returns {{ w: bigint[], square: Fraction, direction: number[] | null }}
 */
function exactMargin(vectors, shift, w) {
  const exact = marginOf(vectors, shift, w);
  if (largest(w) < 1n << 53n) return { ...exact, direction: w.map(Number) };
  const floats = floatsOf(w);
  const short = marginOf(vectors, shift, wholeVectors([floats]).whole[0]);
  if (short.least > 0n && root(short.square, -1) >= root(exact.square, -1) * (1 - 1e-12)) return { ...short, direction: floats };
  const whole = w.map(Number);
  return { ...exact, direction: whole.every(Number.isFinite) ? whole : null };
}

/**
 * The best of what floating point found and the separator that decided.
 * @param {bigint[][]} vectors
 * @param {number} shift
 * @param {number[]} x
 * @param {bigint[]} separator
 * @returns {{ w: bigint[], square: Fraction, direction: null }}
 */
function roundedMargin(vectors, shift, x, separator) {
  const proof = (/** @type {bigint[]} */ w) => marginOf(vectors, shift, w);
  const better = (/** @type {ReturnType<typeof proof>} */ one, /** @type {ReturnType<typeof proof>} */ other) =>
    one.least > 0n && (other.least <= 0n || one.square.p * other.square.q >= other.square.p * one.square.q) ? one : other;
  const best = better(proof(wholeVectors([x]).whole[0]), proof(separator));
  const short = shortDirection(best.w);
  return { ...(short ? better(proof(short), best) : best), direction: null };
}


/** @param {bigint[]} w @returns {bigint[] | null} small whole numbers in nearly the same direction, if there are any */
function shortDirection(w) {
  const top = largest(w);
  const shares = w.map((value) => toNumber(fraction(value, top)));
  for (let scale = 1; scale <= 12; scale += 1) {
    if (shares.every((share) => Math.abs(share * scale - Math.round(share * scale)) < 1e-9)) return shares.map((share) => BigInt(Math.round(share * scale)));
  }
  return null;
}
