// One witness of many, by the rule of Python's `proofs/search/first_witness.py`: the weights that are lexicographically smallest, read from the last pair
// to the first. There is exactly one, whatever the way in which it is found.

import { decide } from "./decide.js";
import { product } from "./rationals.js";
import { Tableau, TimeUp } from "./simplex.js";

/** @import { Weights } from "./simplex.js" */

const MOST_EQUATIONS = 20; // above these limits Python keeps the witness that it found
const MOST_PAIRS = 40_000;

/**
 * The first column that lowers the cost; the cost of a larger number is infinitely larger. A column lowers it if its coefficient in the row of
 * the largest basic number, of those where it is not 0, is positive.
 * @param {Tableau} tableau
 */
function lowering({ columns, basis, inverse, right, height }) {
  const byNumber = Array.from({ length: height }, (_, i) => i).sort((a, b) => basis[b] - basis[a]);
  const basic = new Set(basis);
  const top = byNumber.find((i) => right[i] > 0n);
  const most = top === undefined ? 0 : Math.min(basis[top], columns.length);
  for (let j = 0; j < most; j += 1) {
    if (basic.has(j)) continue;
    for (const i of byNumber) {
      if (basis[i] < j) break;
      const coefficient = product(inverse[i], columns[j]);
      if (coefficient > 0n) return j;
      if (coefficient < 0n) break;
    }
  }
  return -1;
}

/**
 * The first λ ≥ 0 with Σλ·column = b; null if there is none.
 * @param {readonly bigint[][]} columns
 * @param {readonly bigint[]} b
 * @param {readonly number[]} start the columns of a solution that is a vertex, or none
 * @param {number} deadline
 * @returns {{ weights: Weights, q: bigint } | null}
 */
export function firstSolution(columns, b, start, deadline) {
  const tableau = new Tableau(columns, b);
  for (const j of start) {
    const image = tableau.image(j);
    const leaving = image.findIndex((value, i) => value !== 0n && tableau.isArtificial(i));
    if (leaving < 0) return null;
    tableau.enter(j, leaving, image);
  }
  if (tableau.right.some((value) => value < 0n)) return null;
  for (let j = lowering(tableau); j >= 0; j = lowering(tableau)) {
    if (performance.now() > deadline) throw new TimeUp();
    const image = tableau.image(j);
    tableau.enter(j, tableau.leaving(image), image);
  }
  if (tableau.right.some((value, i) => value !== 0n && tableau.isArtificial(i))) return null;
  return { weights: tableau.weights(), q: tableau.determinant };
}

/** @param {readonly bigint[][]} vectors @param {number} equations */
function isSmall(vectors, equations) {
  return equations <= MOST_EQUATIONS && vectors.length <= MOST_PAIRS;
}

/**
 * The first witness of all pairs; the one that was found where there are too many or time is up.
 * @param {readonly bigint[][]} vectors of the pairs, in order of rows and rivals
 * @param {number} equations how many entries of the vectors are independent
 * @param {Weights} found
 * @param {number} deadline
 * @returns {Weights}
 */
export function firstWitness(vectors, equations, found, deadline) {
  if (!isSmall(vectors, equations)) return found;
  try {
    const support = early(vectors, found, deadline);
    const columns = vectors.slice(0, support.reduce((top, at) => Math.max(top, at), 0) + 1).map((vector) => [...vector.slice(-equations), 1n]);
    return firstSolution(columns, [...columns[0].slice(1).map(() => 0n), 1n], support, deadline)?.weights ?? found;
  } catch (problem) {
    if (problem instanceof TimeUp) return found;
    throw problem;
  }
}

/**
 * A witness among the first pairs, as few as there can be: among twice as many each time, then between too few and enough.
 * @param {readonly bigint[][]} vectors
 * @param {Weights} found
 * @param {number} deadline
 */
function early(vectors, found, deadline) {
  let support = found.map(({ at }) => at);
  const last = () => support.reduce((top, at) => Math.max(top, at), 0);
  let [tooFew, size] = [1, vectors[0].length + 1];
  while (tooFew < last()) {
    size = Math.min(size, last());
    const answer = decide(vectors.slice(0, size), deadline);
    if ("witness" in answer) {
      support = answer.witness.map(({ at }) => at);
      size = (tooFew + last() + 1) >> 1;
    } else {
      tooFew = size;
      size = Math.min(2 * tooFew, (tooFew + last() + 1) >> 1);
    }
  }
  return support;
}

/**
 * The first witness that has a pair, of the pairs of a face in which there is one; null where there is none.
 * @param {readonly bigint[][]} vectors
 * @param {number} equations
 * @param {readonly number[]} inside
 * @param {number} chosen
 * @param {number} deadline
 * @returns {Weights | null}
 */
export function firstWitnessWith(vectors, equations, inside, chosen, deadline) {
  const others = inside.filter((i) => i !== chosen);
  const answer = firstSolution(others.map((i) => vectors[i].slice(-equations)), vectors[chosen].slice(-equations).map((value) => -value), [], deadline);
  return answer && [...answer.weights.map(({ at, p }) => ({ at: others[at], p })), { at: chosen, p: answer.q }];
}
