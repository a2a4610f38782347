// A run, computed from its document: the weights after any mistake, the score of any example, the lines of the proof.

import { dot, kernelValue, mapFeatures } from "./engine/maps.js";

/** @import { RunDocument, Vector } from "./engine/types.js" */

/**
 * A step that has been made: `before` and `k` are the mistakes before and after it, `rival` is the class that was lowered or came nearest.
 * @typedef {{ t: number, k: number, before: number, pass: number, mistake: boolean, example: number, y: number, scores: number[], lead: number, rival: number }} Made
 * @typedef {{ t: 0, k: 0, pass: 0, mistake: false, example: null }} Beginning
 * @typedef {{ norm2: number, kR2: number | null, progress: number | null, kGamma: number | null, k2Gamma2: number | null }} ProofLines
 */

export class Run {
  /** @param {RunDocument} doc */
  constructor(doc) {
    this.doc = doc;
    this.classes = doc.classes;
    this.K = doc.classes.length > 2 ? doc.classes.length : 1;
    this.names = doc.map.names;
    this.D = this.names.length;
    this.width = this.D + (doc.bias ? 1 : 0);
    this.steps = doc.steps.length;
    this.mistakeSteps = doc.mistakes.step;
    this.m = this.mistakeSteps.length;
    this.dual = doc.kernel !== null;
    /** The weights after each mistake; none with a kernel. */
    this.path = doc.w ?? [];
    /** @type {Map<number, Vector>} */
    this._phi = new Map();
    this._sums = prefixSums(this.path, this.mistakeSteps);
    this._norms = this.dual ? this._dualNorms() : this.path.map((w) => dot(w, w));
    /** @type {number | undefined} */
    this._kernelR2 = undefined;
  }

  /** φ(x), with a 1 appended if there is a bias. @param {Vector} x */
  phi(x) {
    const mapped = mapFeatures(this.doc.map, x);
    if (this.doc.bias && !this.dual) mapped.push(1);
    return mapped;
  }

  /** @param {number} i */
  phiOf(i) {
    const known = this._phi.get(i);
    if (known) return known;
    const phi = this.phi(this.doc.x[i]);
    this._phi.set(i, phi);
    return phi;
  }

  /** The number of mistakes up to step t. @param {number} t */
  mistakesAt(t) {
    let low = 0;
    let high = this.m;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.mistakeSteps[middle] <= t) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** @param {number} t */
  isMistake(t) {
    const k = this.mistakesAt(t);
    return k > 0 && this.mistakeSteps[k - 1] === t;
  }

  /** @param {number} t */
  passAt(t) {
    const starts = this.doc.pass_starts;
    let p = 0;
    while (p < starts.length && starts[p] < t) p += 1;
    return p;
  }

  /** @param {number} m */
  by(m) {
    return this.doc.mistakes.by === null ? 1 : this.doc.mistakes.by[m];
  }

  /** The weights of output c after k mistakes. @param {number} k */
  weights(k, c = 0) {
    return Array.from(this.path[k]).slice(c * this.width, (c + 1) * this.width);
  }

  /** The mean of the weights after each of the first t steps. @param {number} t */
  averaged(t) {
    const k = this.mistakesAt(t);
    const w = Array.from(this.path[k]);
    if (t === 0) return w;
    const since = k === 0 ? t : t - this.mistakeSteps[k - 1] + 1;
    return w.map((value, j) => (this._sums[k][j] + since * value) / t);
  }

  /** The scores of an example after k mistakes, one for each output. @param {number} k @param {number} i */
  scores(k, i) {
    if (!this.dual) {
      const z = this.phiOf(i);
      return Array.from({ length: this.K }, (_, c) => dot(this.path[k], z, c * this.width));
    }
    const scores = new Array(this.K).fill(0);
    for (let m = 0; m < k; m += 1) this.credit(m, this.kernel(this.mistakenExample(m), i), scores);
    return scores;
  }

  /** @param {number} m */
  mistakenExample(m) {
    return this.doc.steps[this.mistakeSteps[m] - 1];
  }

  /** @param {number} i @param {number} j */
  kernel(i, j) {
    return this.kernelAt(this.doc.x[i], this.doc.x[j]);
  }

  /** @param {Vector} x @param {Vector} z k(x, z), with 1 added if there is a bias */
  kernelAt(x, z) {
    if (!this.doc.kernel) throw new Error("this run has no kernel");
    return kernelValue(this.doc.kernel, x, z) + (this.doc.bias ? 1 : 0);
  }

  /**
   * Add the contribution of mistake m to the scores of an example, given their kernel value.
   * @param {number} m
   * @param {number} value
   * @param {number[]} scores
   */
  credit(m, value, scores) {
    const { up, down } = this.doc.mistakes;
    if (this.K === 1) scores[0] += (up[m] === 1 ? 1 : -1) * this.by(m) * value;
    else {
      scores[up[m]] += this.by(m) * value;
      scores[down[m]] -= this.by(m) * value;
    }
  }

  /** y·score, or the lead of the true class over the best other class, and that class. @param {number[]} scores @param {number} y */
  lead(scores, y) {
    if (this.K === 1) return { lead: y === 1 ? scores[0] : -scores[0], rival: 1 - y };
    let rival = -1;
    for (let c = 0; c < this.K; c += 1) if (c !== y && (rival < 0 || scores[c] > scores[rival])) rival = c;
    return { lead: scores[y] - scores[rival], rival };
  }

  /**
   * Everything about step t; step 0 is the beginning.
   * @param {number} t
   * @returns {Made | Beginning}
   */
  at(t) {
    return t === 0 ? { t, k: 0, pass: 0, mistake: false, example: null } : this.made(t);
  }

  /**
   * Everything about step t, from 1 on.
   * @param {number} t
   * @returns {Made}
   */
  made(t) {
    const k = this.mistakesAt(t);
    const mistake = this.isMistake(t);
    const before = mistake ? k - 1 : k;
    const example = this.doc.steps[t - 1];
    const y = this.doc.y[example];
    const scores = this.scores(before, example);
    const { lead, rival } = this.lead(scores, y);
    const lowered = mistake ? this.doc.mistakes.down[k - 1] : rival;
    return { t, k, before, pass: this.passAt(t), mistake, example, y, scores, lead, rival: this.K > 1 ? lowered : 1 - y };
  }

  /** The lines of the proof after k mistakes; null for those that do not apply. @param {number} k */
  proof(k) {
    const { R2, separator, proof } = this.doc;
    const norm2 = this._norms[k];
    if (!proof) return { norm2, kR2: null, progress: null, kGamma: null, k2Gamma2: null };
    const kR2 = k * (R2 ?? this.kernelR2());
    if (separator === null) return { norm2, kR2, progress: null, kGamma: null, k2Gamma2: null };
    const kGamma = k * separator.gamma;
    return { norm2, kR2, progress: dot(this.path[k], separator.u), kGamma, k2Gamma2: kGamma ** 2 };
  }

  /** R², for K classes jointly 2R², in the kernel's space. */
  kernelR2() {
    const largest = () => this.doc.x.slice(0, this.doc.n_train).reduce((most, x) => Math.max(most, this.kernelAt(x, x)), 0);
    this._kernelR2 ??= largest() * (this.K > 1 ? 2 : 1);
    return this._kernelR2;
  }

  get bound() {
    const { separator, proof, R2 } = this.doc;
    return proof && separator !== null && R2 !== null ? Math.floor((R2 / separator.gamma ** 2) * (1 + 1e-9)) : null;
  }

  _dualNorms() {
    const norms = [0];
    for (let m = 0; m < this.m; m += 1) {
      const i = this.mistakenExample(m);
      const scores = this.scores(m, i);
      const { up, down } = this.doc.mistakes;
      const lead = this.K === 1 ? (up[m] === 1 ? scores[0] : -scores[0]) : scores[up[m]] - scores[down[m]];
      const both = this.K === 1 ? 1 : 2;
      norms.push(norms[m] + 2 * this.by(m) * lead + both * this.by(m) ** 2 * this.kernel(i, i));
    }
    return norms;
  }
}

/** Entry k is the sum of the weights after each step before mistake k. @param {ArrayLike<number>[]} path @param {number[]} steps */
function prefixSums(path, steps) {
  const sums = path.slice(0, 1).map((w) => Array.from(w, () => 0));
  for (let k = 1; k < path.length; k += 1) {
    const lasted = steps[k - 1] - (k === 1 ? 1 : steps[k - 2]);
    sums.push(sums[k - 1].map((/** @type {number} */ sum, /** @type {number} */ j) => sum + lasted * path[k - 1][j]));
  }
  return sums;
}
