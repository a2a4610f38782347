// One step of learning: scores, mistake or not, correction (L1 2 and 5, L2 4–6, L4 2). The order of operations is reference.py's.

import { RecipeError } from "./errors.js";
import { dot, kernelValue } from "./maps.js";

/** @import { Kernel, Settings, Vector } from "./types.js" */

/**
 * @typedef {{ up: number, down: number, by: number, missed: boolean, rate?: number }} Correction the classes raised and lowered, by how much, and
 *   whether the decision itself was wrong
 */

/**
 * Whether score s is a mistake for the label y = ±1: the three meanings of a score of 0.
 * @param {number} y
 * @param {number} s
 * @param {string} tie
 */
function isMistake(y, s, tie) {
  if (tie === "mistake") return y * s <= 0;
  return y !== (s > 0 || (s === 0 && tie === "+1") ? 1 : -1);
}

/**
 * The wrong class with the highest score, the first of several.
 * @param {number} label
 * @param {ArrayLike<number>} scores
 */
export function highestWrong(label, scores) {
  let best = label === 0 ? 1 : 0;
  for (let k = 0; k < scores.length; k += 1) if (k !== label && scores[k] > scores[best]) best = k;
  return best;
}

/**
 * The class that beats the label, or the label itself where it wins.
 * @param {number} label
 * @param {ArrayLike<number>} scores
 * @param {string} tie
 */
function rivalOf(label, scores, tie) {
  const wrong = highestWrong(label, scores);
  const firstWins = tie === "first" || tie === "-1";
  if (scores[wrong] === scores[label]) return !firstWins || wrong < label ? wrong : label;
  return scores[wrong] > scores[label] ? wrong : label;
}

/**
 * Whether the decision is wrong, whatever the rule: by the sign for two classes, else by the highest score.
 * @param {number} label
 * @param {ArrayLike<number>} scores
 * @param {string} tie
 */
export function decidedWrong(label, scores, tie) {
  return scores.length === 1 ? isMistake(2 * label - 1, scores[0], tie) : rivalOf(label, scores, tie) !== label;
}

/**
 * The size of the correction of all rules but the first and AROW; 0 for none. `square` is ‖x‖², for K classes jointly 2‖x‖².
 * @param {Settings} settings
 * @param {number} lead
 * @param {number} square
 */
function correctionOf({ rule, margin, C }, lead, square) {
  if (rule === "margin") return lead <= margin ? 1 : 0;
  const loss = Math.max(0, 1 - lead);
  if (loss === 0 || square === 0) return 0;
  if (rule === "pa1") return Math.min(C, loss / square);
  return rule === "pa2" ? loss / (square + 1 / (2 * C)) : loss / square;
}

/** Weights that learn from examples: `z` is φ(x), with a 1 behind it if there is a bias. */
export class LinearMachine {
  /**
   * @param {Settings} settings
   * @param {number} nClasses
   * @param {number} width
   */
  constructor(settings, nClasses, width) {
    this.settings = settings;
    this.outputs = nClasses > 2 ? nClasses : 1;
    this.width = width;
    this.w = new Float64Array(this.outputs * width);
    const identity = () => Float64Array.from({ length: width * width }, (_, j) => (j % (width + 1) === 0 ? 1 : 0));
    /** Σ of each output, for AROW. */
    this.spread = settings.spread ? Array.from({ length: this.outputs }, identity) : [];
  }

  /** @param {Vector} z */
  scores(z) {
    return Array.from({ length: this.outputs }, (_, k) => dot(this.w, z, k * this.width));
  }

  /**
   * What the rule says of an example; null if it is no mistake.
   * @param {Vector} z
   * @param {number} label
   * @returns {Correction | null}
   */
  judge(z, label) {
    const { rule, tie, spread } = this.settings;
    const scores = this.scores(z);
    if (spread) return this._judgeByVariance(z, label, scores);
    const missed = decidedWrong(label, scores, tie);
    if (this.outputs === 1) {
      const y = 2 * label - 1;
      const by = rule === "perceptron" ? Number(isMistake(y, scores[0], tie)) : correctionOf(this.settings, y * scores[0], dot(z, z));
      return by ? { up: label, down: 1 - label, by, missed } : null;
    }
    const down = rule === "perceptron" ? rivalOf(label, scores, tie) : highestWrong(label, scores);
    const by = rule === "perceptron" ? Number(down !== label) : correctionOf(this.settings, scores[label] - scores[down], 2 * dot(z, z));
    return by ? { up: label, down, by, missed } : null;
  }

  /**
   * Present an example: the weights are corrected if it is a mistake to the rule.
   * @param {Vector} z
   * @param {number} label
   */
  present(z, label) {
    const correction = this.judge(z, label);
    if (!correction) return null;
    const { up, down, by, rate } = correction;
    for (const [k, sign] of this._moved(up, down)) {
      if (rate === undefined) this._add(k, sign * by, z);
      else this._sharpen(k, sign * by, rate, z);
    }
    return correction;
  }

  /**
   * The outputs that a correction changes, each with its sign.
   * @param {number} up
   * @param {number} down
   * @returns {[number, number][]}
   */
  _moved(up, down) {
    return this.outputs === 1 ? [[0, 2 * up - 1]] : [[up, 1], [down, -1]];
  }

  /** @param {number} k @param {number} c @param {Vector} z */
  _add(k, c, z) {
    const from = k * this.width;
    for (let j = 0; j < this.width; j += 1) this.w[from + j] += c * z[j];
  }

  /**
   * AROW: move along Σx by (1 − lead)/(v + 1/C), where v = xᵀΣx of the lead.
   * @param {Vector} z
   * @param {number} label
   * @param {number[]} scores
   * @returns {Correction | null}
   */
  _judgeByVariance(z, label, scores) {
    const down = this.outputs > 1 ? highestWrong(label, scores) : 1 - label;
    const moved = this._moved(label, down);
    const lead = moved.reduce((sum, [k, sign]) => sum + sign * scores[k], 0);
    if (!(lead < 1) || z.every((value) => value === 0)) return null;
    const rate = 1 / (moved.reduce((sum, [k]) => sum + dot(this._along(k, z), z), 0) + 1 / this.settings.C);
    return { up: label, down, by: (1 - lead) * rate, missed: decidedWrong(label, scores, this.settings.tie), rate };
  }

  /** @param {number} k @param {Vector} z @returns {number[]} Σx of output k */
  _along(k, z) {
    return Array.from({ length: this.width }, (_, i) => dot(this.spread[k], z, i * this.width));
  }

  /** Σ ← Σ − rate·(Σx)(Σx)ᵀ, or the diagonal of that. @param {number} k @param {number} by @param {number} rate @param {Vector} z */
  _sharpen(k, by, rate, z) {
    const { width } = this;
    const [S, along] = [this.spread[k], this._along(k, z)];
    this._add(k, by, along);
    for (let i = 0; i < width; i += 1) {
      for (let j = 0; j < width; j += 1) if (i === j || this.settings.spread === "full") S[i * width + j] -= rate * (along[i] * along[j]);
    }
  }

  /** The numbers that determine all that follows in cyclic order. */
  state() {
    return this.w.slice();
  }

  /** Raise an error where numbers have left the range in which the weights mean something. */
  check() {
    if (!this.w.every(Number.isFinite)) throw new RecipeError("the weights outgrew float64: scale the features down");
    const isLost = this.settings.spread === "full" && this.spread.some((S) => S.some((value, j) => j % (this.width + 1) === 0 && !(value > 0)));
    if (isLost) throw new RecipeError(`the rule '${this.settings.rule}' has lost its matrix to rounding: the features span too many powers of ten; scale them, or use the rule 'arow'`);
  }
}

/** The same in the space of a kernel: the score is Σ αᵢ k(xᵢ, x). */
export class KernelMachine {
  /**
   * @param {Settings} settings
   * @param {number} nClasses
   * @param {Vector[]} gram k(xᵢ, xⱼ), with 1 added if there is a bias
   */
  constructor(settings, nClasses, gram) {
    this.settings = settings;
    this.outputs = nClasses > 2 ? nClasses : 1;
    this.gram = gram;
    this.alpha = Array.from({ length: this.outputs }, () => new Float64Array(gram.length));
  }

  /** @param {number} i */
  scores(i) {
    return this.alpha.map((alpha) => dot(alpha, this.gram[i]));
  }

  /**
   * @param {number} i
   * @param {number} label
   * @returns {Correction | null}
   */
  judge(i, label) {
    const scores = this.scores(i);
    if (!decidedWrong(label, scores, this.settings.tie)) return null;
    return { up: label, down: this.outputs === 1 ? 1 - label : rivalOf(label, scores, this.settings.tie), by: 1, missed: true };
  }

  /** @param {number} i @param {number} label */
  present(i, label) {
    const correction = this.judge(i, label);
    if (!correction) return null;
    if (this.outputs === 1) this.alpha[0][i] += 2 * label - 1;
    else {
      this.alpha[label][i] += 1;
      this.alpha[correction.down][i] -= 1;
    }
    return correction;
  }

  /** The scores of all examples: α itself grows in a cycle. */
  state() {
    return Float64Array.from(this.gram.flatMap((_, i) => this.scores(i)));
  }

  /** Raise an error where scores are no numbers any more. */
  check() {
    if (!this.state().every(Number.isFinite)) throw new RecipeError("the scores outgrew float64: scale the features down, or lower the degree");
  }
}

/**
 * The kernel values between all examples.
 * @param {Kernel} kernel
 * @param {Vector[]} X
 * @param {boolean} bias
 */
export function gramMatrix(kernel, X, bias) {
  const gram = X.map(() => new Array(X.length).fill(0));
  for (let i = 0; i < X.length; i += 1) for (let j = 0; j <= i; j += 1) gram[i][j] = gram[j][i] = kernelValue(kernel, X[i], X[j]) + (bias ? 1 : 0);
  return gram;
}
