// Exact arithmetic: floats as whole numbers with a common power of two, fractions, and linear algebra over whole numbers.

/** @typedef {{ p: bigint, q: bigint }} Fraction p/q in lowest terms, q > 0 */

const words = new DataView(new ArrayBuffer(8));

/** @param {number} value finite @returns {[bigint, number]} m and e with value = m·2^e */
function parts(value) {
  words.setFloat64(0, value);
  const bits = words.getBigUint64(0);
  const power = Number((bits >> 52n) & 0x7ffn);
  const digits = bits & ((1n << 52n) - 1n);
  const mantissa = power === 0 ? digits : digits | (1n << 52n);
  if (mantissa === 0n) return [0n, 0];
  let [m, e] = [mantissa, Math.max(power, 1) - 1075];
  while ((m & 1n) === 0n) [m, e] = [m >> 1n, e + 1];
  return [bits >> 63n ? -m : m, e];
}

/**
 * Vectors of floats as whole numbers, all of them times 2^shift.
 * @param {readonly ArrayLike<number>[]} vectors
 * @returns {{ whole: bigint[][], shift: number }}
 */
export function wholeVectors(vectors) {
  const split = vectors.map((vector) => Array.from(vector, parts));
  const least = split.reduce((low, vector) => vector.reduce((lowest, [m, e]) => (m === 0n ? lowest : Math.min(lowest, e)), low), 0);
  return { whole: split.map((vector) => vector.map(([m, e]) => m << BigInt(e - least))), shift: -least };
}

/** @param {bigint} a @param {bigint} b */
function gcd(a, b) {
  let [x, y] = [a < 0n ? -a : a, b < 0n ? -b : b];
  while (y) [x, y] = [y, x % y];
  return x;
}

/** @param {bigint} p @param {bigint} q @returns {Fraction} */
export function fraction(p, q = 1n) {
  const common = gcd(p, q) || 1n;
  const sign = q < 0n ? -1n : 1n;
  return { p: (sign * p) / common, q: (sign * q) / common };
}

/** @param {Fraction} value */
export function toText({ p, q }) {
  return q === 1n ? String(p) : `${p}/${q}`;
}

/** @param {bigint} value about how many bits it has */
function size(value) {
  return (value < 0n ? -value : value).toString(16).length * 4;
}

/** @param {Fraction} value @returns {number} the value as a float, accurate to the last digits */
export function toNumber({ p, q }) {
  const shift = size(q) - size(p) + 80;
  const scaled = shift >= 0 ? (p << BigInt(shift)) / q : p / (q << BigInt(-shift));
  return shift > 1000 ? Number(scaled) * 2 ** -1000 * 2 ** (1000 - shift) : Number(scaled) * 2 ** -shift;
}

/** @param {readonly bigint[]} a @param {readonly bigint[]} b */
export function product(a, b) {
  let sum = 0n;
  for (let j = 0; j < b.length; j += 1) if (a[j] && b[j]) sum += a[j] * b[j];
  return sum;
}

/** @param {readonly bigint[]} vector divided by the largest whole number that divides all entries */
export function primitive(vector) {
  const common = vector.reduce((divisor, value) => gcd(divisor, value), 0n);
  return common > 1n ? vector.map((value) => value / common) : [...vector];
}

/**
 * A basis, in whole numbers, of the vectors that are orthogonal to the given ones.
 * @param {readonly bigint[][]} vectors
 * @param {number} dim
 */
export function orthogonalBasis(vectors, dim) {
  const rows = /** @type {bigint[][]} */ ([]);
  const pivots = /** @type {number[]} */ ([]);
  for (const vector of vectors) {
    let rest = [...vector];
    rows.forEach((row, r) => {
      const factor = rest[pivots[r]];
      if (factor) rest = rest.map((value, j) => value * row[pivots[r]] - factor * row[j]);
    });
    const pivot = rest.findIndex((value) => value !== 0n);
    if (pivot < 0) continue;
    rest = primitive(rest);
    rows.forEach((row, r) => {
      const factor = row[pivot];
      if (factor) rows[r] = primitive(row.map((value, j) => value * rest[pivot] - factor * rest[j]));
    });
    rows.push(rest);
    pivots.push(pivot);
  }
  const free = Array.from({ length: dim }, (_, j) => j).filter((j) => !pivots.includes(j));
  return free.map((j) => {
    const scale = rows.reduce((common, row, r) => (common * row[pivots[r]]) / (gcd(common, row[pivots[r]]) || 1n), 1n);
    const vector = new Array(dim).fill(0n);
    vector[j] = scale;
    rows.forEach((row, r) => {
      vector[pivots[r]] = (-row[j] * scale) / row[pivots[r]];
    });
    return primitive(vector);
  });
}

/**
 * The solution of Mu = b up to a positive factor, by elimination without fractions; null where M is singular.
 * @param {readonly bigint[][]} M
 * @param {readonly bigint[]} b
 */
export function solved(M, b) {
  const n = b.length;
  const rows = M.map((row, i) => [...row, b[i]]);
  for (let c = 0, last = 1n; c < n; c += 1) {
    const pivot = rows.findIndex((row, i) => i >= c && row[c] !== 0n);
    if (pivot < 0) return null;
    [rows[c], rows[pivot]] = [rows[pivot], rows[c]];
    for (let i = 0; i < n; i += 1) {
      if (i !== c) rows[i] = rows[i].map((value, j) => (value * rows[c][c] - rows[c][j] * rows[i][c]) / last);
    }
    last = rows[c][c];
  }
  const sign = rows[0][0] < 0n ? -1n : 1n; // after Gauss and Jordan, all diagonal entries are the determinant
  return rows.map((row) => sign * row[n]);
}

/**
 * The largest float whose square is at most the fraction, or the smallest whose square is at least it.
 * @param {Fraction} square
 * @param {-1 | 1} side
 */
export function root(square, side) {
  if (square.p === 0n) return 0;
  const half = Math.trunc((size(square.p) - size(square.q)) / 2); // 4^half brings the square near 1, so that it is a float
  const near = half > 0 ? fraction(square.p, square.q << BigInt(2 * half)) : fraction(square.p << BigInt(-2 * half), square.q);
  let value = Math.sqrt(toNumber(near)) * 2 ** half;
  const compared = (/** @type {number} */ candidate) => {
    const [m, e] = parts(candidate);
    const [left, right] = e >= 0 ? [(m * m * square.q) << BigInt(2 * e), square.p] : [m * m * square.q, square.p << BigInt(-2 * e)];
    return left < right ? -1 : left > right ? 1 : 0;
  };
  const moved = (/** @type {number} */ from, /** @type {number} */ direction) => {
    words.setFloat64(0, from);
    words.setBigUint64(0, words.getBigUint64(0) + BigInt(direction));
    return words.getFloat64(0);
  };
  while (compared(value) === -side) value = moved(value, side);
  while (compared(moved(value, -side)) !== -side) value = moved(value, -side);
  return value;
}
