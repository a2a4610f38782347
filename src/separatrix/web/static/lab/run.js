// A run, computed from its document: the weights after any mistake, the score of any example, the lines of the proof.

import { dot, kernelValue, mapFeatures } from "./engine/maps.js";

export class Run {
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
    this._phi = new Map();
    this._sums = this.dual ? null : prefixSums(doc.w, this.mistakeSteps);
    this._norms = this.dual ? this._dualNorms() : doc.w.map((w) => dot(w, w));
  }

  // φ(x), with a 1 appended if there is a bias.
  phi(x) {
    const mapped = mapFeatures(this.doc.map, x);
    if (this.doc.bias && !this.dual) mapped.push(1);
    return mapped;
  }

  phiOf(i) {
    if (!this._phi.has(i)) this._phi.set(i, this.phi(this.doc.x[i]));
    return this._phi.get(i);
  }

  // The number of mistakes up to step t.
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

  isMistake(t) {
    const k = this.mistakesAt(t);
    return k > 0 && this.mistakeSteps[k - 1] === t;
  }

  passAt(t) {
    const starts = this.doc.pass_starts;
    let p = 0;
    while (p < starts.length && starts[p] < t) p += 1;
    return p;
  }

  by(m) {
    return this.doc.mistakes.by === null ? 1 : this.doc.mistakes.by[m];
  }

  // The weights of output c after k mistakes.
  weights(k, c = 0) {
    return this.doc.w[k].slice(c * this.width, (c + 1) * this.width);
  }

  // The mean of the weights after each of the first t steps.
  averaged(t) {
    const k = this.mistakesAt(t);
    const w = this.doc.w[k];
    if (t === 0) return [...w];
    const since = k === 0 ? t : t - this.mistakeSteps[k - 1] + 1;
    return w.map((value, j) => (this._sums[k][j] + since * value) / t);
  }

  // The scores of an example after k mistakes, one for each output.
  scores(k, i) {
    if (!this.dual) {
      const z = this.phiOf(i);
      return Array.from({ length: this.K }, (_, c) => dot(this.doc.w[k], z, c * this.width));
    }
    const scores = new Array(this.K).fill(0);
    for (let m = 0; m < k; m += 1) this.credit(m, this.kernel(this.mistakenExample(m), i), scores);
    return scores;
  }

  mistakenExample(m) {
    return this.doc.steps[this.mistakeSteps[m] - 1];
  }

  kernel(i, j) {
    return kernelValue(this.doc.kernel, this.doc.x[i], this.doc.x[j]) + (this.doc.bias ? 1 : 0);
  }

  // Add the contribution of mistake m to the scores of an example, given their kernel value.
  credit(m, value, scores) {
    const { up, down } = this.doc.mistakes;
    if (this.K === 1) scores[0] += (up[m] === 1 ? 1 : -1) * this.by(m) * value;
    else {
      scores[up[m]] += this.by(m) * value;
      scores[down[m]] -= this.by(m) * value;
    }
  }

  // y·score, or the lead of the true class over the best other class, and that class.
  lead(scores, y) {
    if (this.K === 1) return { lead: y === 1 ? scores[0] : -scores[0], rival: 1 - y };
    let rival = -1;
    for (let c = 0; c < this.K; c += 1) if (c !== y && (rival < 0 || scores[c] > scores[rival])) rival = c;
    return { lead: scores[y] - scores[rival], rival };
  }

  // Everything about step t; step 0 is the beginning.
  at(t) {
    const k = this.mistakesAt(t);
    if (t === 0) return { t, k, pass: 0, mistake: false, example: null };
    const mistake = this.isMistake(t);
    const before = mistake ? k - 1 : k;
    const example = this.doc.steps[t - 1];
    const y = this.doc.y[example];
    const scores = this.scores(before, example);
    const { lead, rival } = this.lead(scores, y);
    const lowered = mistake ? this.doc.mistakes.down[k - 1] : rival;
    return { t, k, before, pass: this.passAt(t), mistake, example, y, scores, lead, rival: this.K > 1 ? lowered : 1 - y };
  }

  // The lines of the proof after k mistakes; null for those that do not apply.
  proof(k) {
    const { R2, separator, proof } = this.doc;
    const lines = { norm2: this._norms[k], kR2: null, progress: null, kGamma: null, k2Gamma2: null };
    if (!proof) return lines;
    lines.kR2 = k * (R2 ?? this.kernelR2());
    if (separator !== null) {
      lines.progress = dot(this.doc.w[k], separator.u);
      lines.kGamma = k * separator.gamma;
      lines.k2Gamma2 = lines.kGamma ** 2;
    }
    return lines;
  }

  kernelR2() {
    if (this._kernelR2 === undefined) {
      let most = 0;
      for (let i = 0; i < this.doc.n_train; i += 1) most = Math.max(most, this.kernel(i, i));
      this._kernelR2 = most * (this.K > 1 ? 2 : 1);
    }
    return this._kernelR2;
  }

  get bound() {
    const { separator, proof, R2 } = this.doc;
    return proof && separator !== null ? Math.floor((R2 / separator.gamma ** 2) * (1 + 1e-9)) : null;
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

// Entry k is the sum of the weights after each step before mistake k.
function prefixSums(path, steps) {
  const sums = [new Array(path[0].length).fill(0)];
  for (let k = 1; k < path.length; k += 1) {
    const lasted = steps[k - 1] - (k === 1 ? 1 : steps[k - 2]);
    sums.push(sums[k - 1].map((sum, j) => sum + lasted * path[k - 1][j]));
  }
  return sums;
}
