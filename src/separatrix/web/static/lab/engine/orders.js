// The orders of a pass (L1 5, L2 4, L5 3): a function of the seed and the pass alone, the same as Python's.

import { Generator } from "./generator.js";

/**
 * The examples of pass `number`, from 0, in the order of presentation. Up to 32,767 rows, the shuffle of Python's engine is a permutation.
 * @param {string} order
 * @param {number} n
 * @param {number} seed
 * @param {number} number
 */
export function orderOf(order, n, seed, number) {
  if (order === "cyclic") return Array.from({ length: n }, (_, i) => i);
  const random = new Generator([seed, number]);
  return order === "random" ? random.integers(0, n, n) : random.permutation(n);
}
