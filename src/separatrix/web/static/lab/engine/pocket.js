// The pocket: the weights of a run that made the fewest training mistakes (L1 3).

import { dot } from "./maps.js";
import { decidedWrong } from "./machine.js";

/** @import { LinearMachine } from "./machine.js" */
/** @import { Settings, Vector } from "./types.js" */

const TRIED_PER_PASS = 10;

/**
 * The best weights so far, which only weights with fewer training mistakes replace. After each pass, those of its weight
 * vectors that lasted longest are tried on all examples, and at the end the last weights.
 */
export class Pocket {
  /**
   * @param {LinearMachine} machine
   * @param {Vector[]} Z
   * @param {number[]} codes
   * @param {Settings} settings
   */
  constructor(machine, Z, codes, settings) {
    this._Z = Z;
    this._codes = codes;
    this._tie = settings.tie;
    this._outputs = machine.outputs;
    this._width = machine.width;
    /** The weights of this pass: after how many mistakes, from which step on. */
    this._held = [{ k: 0, from: 1, w: machine.w.slice() }];
    this._tried = 0;
    this.kept = 0;
    this.best = this._held[0].w;
    this.fewest = this._mistakes(this.best);
  }

  /** @param {number} step @param {{ w: Float64Array }} machine the weights after another mistake */
  note(step, machine) {
    this._held.push({ k: this._held[this._held.length - 1].k + 1, from: step, w: machine.w.slice() });
  }

  /** @param {number} steps so far @returns {number} the number of mistakes after which the best weights were reached */
  afterPass(steps) {
    const held = this._held;
    const lasted = held.map(({ k, from }, j) => (k === this._tried ? 0 : (held[j + 1]?.from ?? steps + 1) - from));
    const longest = held.map((_, j) => j).sort((a, b) => lasted[b] - lasted[a] || a - b).slice(0, TRIED_PER_PASS);
    this._try(longest.filter((j) => lasted[j] > 0));
    this._held = held.slice(-1);
    return this.kept;
  }

  /** Try the last weights too, however short they lasted. */
  afterTraining() {
    if (this._held[0].k !== this._tried) this._try([0]);
    return this.kept;
  }

  /** @param {number[]} chosen places in the list of held weights, the longest survivor first */
  _try(chosen) {
    const counts = new Map(chosen.map((j) => [j, this._mistakes(this._held[j].w)]));
    for (const j of chosen) {
      const count = /** @type {number} */ (counts.get(j));
      if (count < this.fewest) [this.fewest, this.best, this.kept] = [count, this._held[j].w, this._held[j].k];
    }
    if (chosen.length) this._tried = Math.max(...chosen.map((j) => this._held[j].k));
  }

  /** @param {Float64Array} w */
  _mistakes(w) {
    return this._codes.filter((code, i) => {
      const scores = Array.from({ length: this._outputs }, (_, c) => dot(w, this._Z[i], c * this._width));
      return decidedWrong(code, scores, this._tie);
    }).length;
  }
}
