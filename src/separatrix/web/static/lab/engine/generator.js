// NumPy's random generator: `np.random.default_rng(seed)`, draw for draw. SeedSequence, PCG64, bounded integers, permutations.

const MASK_64 = (1n << 64n) - 1n;
const MASK_128 = (1n << 128n) - 1n;
const MULTIPLIER = 0x2360ed051fc65da44385df649fccf645n;
const POOL = 4;

/**
 * The 32-bit words that SeedSequence derives from some entropy.
 * @param {number[]} entropy whole numbers below 2³², as in `default_rng([seed, number])`
 * @param {number} count
 * @returns {number[]}
 */
export function seedWords(entropy, count) {
  let constant = 0x43b0d7e5;
  const hashed = (/** @type {number} */ value) => {
    let word = (value ^ constant) >>> 0;
    constant = Math.imul(constant, 0x931e8875) >>> 0;
    word = Math.imul(word, constant) >>> 0;
    return (word ^ (word >>> 16)) >>> 0;
  };
  const mixed = (/** @type {number} */ x, /** @type {number} */ y) => {
    const word = (Math.imul(0xca01f9dd, x) - Math.imul(0x4973f715, y)) >>> 0;
    return (word ^ (word >>> 16)) >>> 0;
  };
  const pool = Array.from({ length: POOL }, (_, i) => hashed(entropy[i] ?? 0));
  for (let from = 0; from < POOL; from += 1) for (let to = 0; to < POOL; to += 1) if (from !== to) pool[to] = mixed(pool[to], hashed(pool[from]));
  for (const word of entropy.slice(POOL)) for (let to = 0; to < POOL; to += 1) pool[to] = mixed(pool[to], hashed(word));
  constant = 0x8b51f9dd;
  return Array.from({ length: count }, (_, i) => {
    let word = (pool[i % POOL] ^ constant) >>> 0;
    constant = Math.imul(constant, 0x58f38ded) >>> 0;
    word = Math.imul(word, constant) >>> 0;
    return (word ^ (word >>> 16)) >>> 0;
  });
}

export class Generator {
  /** @param {number[]} entropy */
  constructor(entropy) {
    const words = seedWords(entropy, 8).map(BigInt);
    const long = (/** @type {number} */ i) => (words[2 * i + 1] << 32n) | words[2 * i];
    this._state = 0n;
    this._increment = ((((long(2) << 64n) | long(3)) << 1n) | 1n) & MASK_128;
    this._step();
    this._state = (this._state + ((long(0) << 64n) | long(1))) & MASK_128;
    this._step();
    /** @type {number | null} */
    this._half = null; // the upper half of a 64-bit draw of which the lower half was used
  }

  _step() {
    this._state = (this._state * MULTIPLIER + this._increment) & MASK_128;
  }

  /** @returns {bigint} 64 random bits */
  next64() {
    this._step();
    const folded = (this._state >> 64n) ^ (this._state & MASK_64);
    const turn = this._state >> 122n;
    return ((folded >> turn) | (folded << (-turn & 63n))) & MASK_64;
  }

  /** @returns {number} 32 random bits */
  next32() {
    if (this._half !== null) {
      const half = this._half;
      this._half = null;
      return half;
    }
    const bits = this.next64();
    this._half = Number(bits >> 32n);
    return Number(bits & 0xffffffffn);
  }

  /** A number from [0, 1). */
  random() {
    return Number(this.next64() >> 11n) / 9007199254740992;
  }

  /** @param {number} low @param {number} high */
  uniform(low, high) {
    return low + (high - low) * this.random();
  }

  /**
   * A whole number from 0 to `most`, by Lemire's method.
   * @param {number} most below 2³² − 1
   */
  upTo(most) {
    if (most === 0) return 0;
    const count = most + 1;
    const threshold = (4294967296 - count) % count;
    for (;;) {
      const product = BigInt(this.next32()) * BigInt(count);
      if (Number(product & 0xffffffffn) >= threshold) return Number(product >> 32n);
    }
  }

  /**
   * `integers(low, high, size)`.
   * @param {number} low
   * @param {number} high one above the largest
   * @param {number} size
   */
  integers(low, high, size) {
    return Array.from({ length: size }, () => low + this.upTo(high - 1 - low));
  }

  /** @param {number} n @returns {number[]} 0 … n − 1 in random order */
  permutation(n) {
    const order = Array.from({ length: n }, (_, i) => i);
    for (let i = n - 1; i > 0; i -= 1) {
      const mask = 2 ** (32 - Math.clz32(i)) - 1; // NumPy draws by rejection here, not by Lemire's method
      let j;
      do j = (this.next32() & mask) >>> 0;
      while (j > i);
      [order[i], order[j]] = [order[j], order[i]];
    }
    return order;
  }
}
