// NumPy's older generator, `np.random.RandomState(seed)`, which scikit-learn draws from: MT19937, draw for draw.

const SIZE = 624;

export class Twister {
  /** @param {number} seed below 2³² */
  constructor(seed) {
    this._words = new Uint32Array(SIZE);
    this._words[0] = seed >>> 0;
    for (let i = 1; i < SIZE; i += 1) {
      const last = this._words[i - 1] ^ (this._words[i - 1] >>> 30);
      this._words[i] = Math.imul(last, 1812433253) + i;
    }
    this._at = SIZE;
    /** @type {number | null} */
    this._second = null; // normal numbers are drawn in pairs
  }

  _refill() {
    const words = this._words;
    for (let i = 0; i < SIZE; i += 1) {
      const bits = (words[i] & 0x80000000) | (words[(i + 1) % SIZE] & 0x7fffffff);
      words[i] = words[(i + 397) % SIZE] ^ (bits >>> 1) ^ (bits & 1 ? 0x9908b0df : 0);
    }
    this._at = 0;
  }

  /** @returns {number} 32 random bits */
  next32() {
    if (this._at === SIZE) this._refill();
    let word = this._words[this._at];
    this._at += 1;
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d2c5680;
    word ^= (word << 15) & 0xefc60000;
    return (word ^ (word >>> 18)) >>> 0;
  }

  /** A number from [0, 1). */
  random() {
    const [high, low] = [this.next32() >>> 5, this.next32() >>> 6];
    return (high * 67108864 + low) / 9007199254740992;
  }

  /** @param {number} low @param {number} high */
  uniform(low, high) {
    return low + (high - low) * this.random();
  }

  /** A standard normal number, by the polar method. */
  normal() {
    if (this._second !== null) {
      const second = this._second;
      this._second = null;
      return second;
    }
    for (;;) {
      const [x, y] = [2 * this.random() - 1, 2 * this.random() - 1];
      const square = x * x + y * y;
      if (square >= 1 || square === 0) continue;
      const factor = Math.sqrt((-2 * Math.log(square)) / square);
      this._second = factor * x;
      return factor * y;
    }
  }

  /** @param {number} most @returns {number} a whole number from 0 to `most`, by rejection */
  _upTo(most) {
    if (most === 0) return 0;
    const mask = 2 ** (32 - Math.clz32(most)) - 1;
    for (;;) {
      const draw = (this.next32() & mask) >>> 0;
      if (draw <= most) return draw;
    }
  }

  /**
   * Some values in random order.
   * @template T
   * @param {readonly T[]} values
   * @returns {T[]}
   */
  permuted(values) {
    const order = [...values];
    for (let i = order.length - 1; i > 0; i -= 1) {
      const j = this._upTo(i);
      [order[i], order[j]] = [order[j], order[i]];
    }
    return order;
  }
}
