// The point of a convex hull that is nearest to the origin, exactly: Wolfe's algorithm (1976) over whole numbers.

import { primitive, product, solved } from "./rationals.js";

/**
 * Vertices of the hull, numbered, with positive weights; their weighted sum is `sum`, and `total` the sum of the weights.
 * @typedef {{ keys: number[], weights: bigint[], total: bigint, sum: bigint[] }} Point
 */

const MOST_VERTICES = 20; // a system of more equations takes too long in a page
const MOST_ROUNDS = 200;

/**
 * The nearest point, or null where it would take too long. A start near the end makes the search short.
 * @param {number[]} start numbers of some vertices
 * @param {(key: number) => bigint[]} vertex
 * @param {(x: bigint[]) => number} lowest the vertex v with the smallest ⟨x, v⟩
 * @param {number} deadline of performance.now()
 * @returns {Point | null}
 */
export function exactNearest(start, vertex, lowest, deadline) {
  if (start.length > MOST_VERTICES) return null;
  const opening = affine(start, vertex);
  let point = opening?.weights.every((weight) => weight > 0n) ? opening : weighted(start.slice(0, 1), [1n], vertex);
  for (let round = 0; round < MOST_ROUNDS && performance.now() < deadline; round += 1) {
    const next = lowest(point.sum);
    // The conditions of optimality: no vertex has a smaller product with x than x itself.
    if (product(point.sum, vertex(next)) * point.total >= product(point.sum, point.sum)) return point;
    let [keys, weights] = [[...point.keys, next], [...point.weights, 0n]];
    for (;;) {
      const minimum = keys.length > MOST_VERTICES ? null : affine(keys, vertex);
      if (!minimum) return null;
      if (minimum.weights.every((weight) => weight > 0n)) {
        point = minimum;
        break;
      }
      [keys, weights] = towards(keys, weights, minimum);
    }
  }
  return null;
}

/** @param {number[]} keys @param {bigint[]} weights @param {(key: number) => bigint[]} vertex @returns {Point} */
function weighted(keys, weights, vertex) {
  const vectors = keys.map(vertex);
  const sum = vectors[0].map((_, j) => vectors.reduce((part, vector, i) => part + weights[i] * vector[j], 0n));
  return { keys, weights, total: weights.reduce((part, weight) => part + weight, 0n), sum };
}

/**
 * The nearest point of the affine hull, whose weights may be negative; null where the vertices are affinely dependent.
 * @param {number[]} keys
 * @param {(key: number) => bigint[]} vertex
 */
function affine(keys, vertex) {
  const vectors = keys.map(vertex);
  const weights = solved(vectors.map((a) => vectors.map((b) => product(a, b) + 1n)), vectors.map(() => 1n));
  return weights && weighted(keys, primitive(weights), vertex);
}

/**
 * From the weights towards those of the affine minimum, as far as none gets negative; vertices without weight are left out.
 * @param {number[]} keys
 * @param {bigint[]} weights
 * @param {Point} minimum
 * @returns {[number[], bigint[]]}
 */
function towards(keys, weights, minimum) {
  const total = weights.reduce((part, weight) => part + weight, 0n);
  let [p, q] = [1n, 1n]; // the share of the way, p/q
  minimum.weights.forEach((goal, i) => {
    if (goal > 0n) return;
    const [above, below] = [weights[i] * minimum.total, weights[i] * minimum.total - goal * total];
    if (below > 0n && above * q < p * below) [p, q] = [above, below];
  });
  const moved = primitive(weights.map((weight, i) => (q - p) * weight * minimum.total + p * minimum.weights[i] * total));
  const left = keys.map((_, i) => i).filter((i) => moved[i] > 0n);
  return [left.map((i) => keys[i]), left.map((i) => moved[i])];
}
