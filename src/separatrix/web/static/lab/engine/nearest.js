// The point of a convex hull that is nearest to the origin, by Wolfe's algorithm (1976): the widest margin, or a witness.

/** @import { Vector } from "./types.js" */

/**
 * A vertex of the hull: its vector and the number that identifies it.
 * @typedef {{ key: number, vector: ArrayLike<number> }} Vertex
 * @typedef {{ x: number[], corral: { key: number, vector: ArrayLike<number>, weight: number }[] }} Nearest
 */

const MOST_STEPS = 3000;

/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
function inner(a, b) {
  let sum = 0;
  for (let j = 0; j < b.length; j += 1) sum += a[j] * b[j];
  return sum;
}

/**
 * Solve (G + 11ᵀ)u = 1 by Cholesky's factorization, and return u/Σu: the weights of the affine hull's nearest point.
 * @param {number[][]} gram
 * @returns {number[] | null} null where the vectors are affinely dependent, as far as floating point can tell
 */
function affineWeights(gram) {
  const n = gram.length;
  const shift = Math.max(...gram.map((row, i) => row[i])) || 1;
  const L = gram.map((row) => row.map((value) => value + shift));
  for (let i = 0; i < n; i += 1) {
    for (let j = 0; j <= i; j += 1) {
      let sum = L[i][j];
      for (let k = 0; k < j; k += 1) sum -= L[i][k] * L[j][k];
      if (i === j) {
        if (!(sum > 1e-15 * shift)) return null;
        L[i][i] = Math.sqrt(sum);
      } else L[i][j] = sum / L[j][j];
    }
  }
  const u = new Array(n).fill(0);
  for (let i = 0; i < n; i += 1) {
    let sum = 1;
    for (let k = 0; k < i; k += 1) sum -= L[i][k] * u[k];
    u[i] = sum / L[i][i];
  }
  for (let i = n - 1; i >= 0; i -= 1) {
    let sum = u[i];
    for (let k = i + 1; k < n; k += 1) sum -= L[k][i] * u[k];
    u[i] = sum / L[i][i];
  }
  const total = u.reduce((sum, value) => sum + value, 0);
  return u.map((value) => value / total);
}

/**
 * @param {Vertex} start any vertex
 * @param {(x: number[]) => Vertex} lowest the vertex v with the smallest ⟨x, v⟩
 * @param {number} [deadline] of performance.now()
 * @returns {Nearest}
 */
export function nearestPoint(start, lowest, deadline = Infinity) {
  let corral = [{ ...start, weight: 1 }];
  let x = Array.from(start.vector);
  for (let step = 0; step < MOST_STEPS; step += 1) {
    const next = lowest(x);
    const square = inner(x, x);
    const scale = Math.max(...corral.map(({ vector }) => inner(vector, vector)), inner(next.vector, next.vector));
    if (inner(x, next.vector) >= square - 1e-15 * scale || corral.some(({ key }) => key === next.key) || performance.now() > deadline) break;
    let grown = [...corral, { ...next, weight: 0 }];
    for (;;) {
      const weights = affineWeights(grown.map((a) => grown.map((b) => inner(a.vector, b.vector))));
      if (weights === null || !weights.every(Number.isFinite)) return { x, corral };
      if (weights.every((weight) => weight > 1e-14)) {
        grown = grown.map((each, i) => ({ ...each, weight: weights[i] }));
        break;
      }
      // Go towards the affine minimum as far as all weights stay positive; at least one vertex is left out.
      const shares = grown.map(({ weight }, i) => (weights[i] <= 1e-14 ? Math.min(1, weight / (weight - weights[i])) : Infinity));
      const share = Math.min(...shares);
      grown = grown.map((each, i) => ({ ...each, weight: share === shares[i] ? 0 : (1 - share) * each.weight + share * weights[i] })).filter(({ weight }) => weight > 0);
      if (!grown.length) return { x, corral };
    }
    const y = x.map((_, j) => grown.reduce((sum, { vector, weight }) => sum + weight * vector[j], 0));
    if (inner(y, y) >= square) break; // no progress is left in floating point
    [corral, x] = [grown, y];
  }
  return { x, corral };
}

/**
 * The nearest point of the hull of some vectors.
 * @param {readonly ArrayLike<number>[]} vectors
 * @param {number} [deadline]
 */
export function nearestOf(vectors, deadline) {
  const vertex = (/** @type {number} */ key) => ({ key, vector: vectors[key] });
  let first = 0;
  vectors.forEach((vector, i) => {
    if (inner(vector, vector) < inner(vectors[first], vectors[first])) first = i;
  });
  return nearestPoint(vertex(first), (x) => {
    let [best, least] = [0, Infinity];
    for (let i = 0; i < vectors.length; i += 1) {
      const value = inner(vectors[i], x);
      if (value < least) [best, least] = [i, value];
    }
    return vertex(best);
  }, deadline);
}
