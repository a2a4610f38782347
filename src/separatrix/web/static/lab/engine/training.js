// Training: passes until one is clean, the weights come back, no clean pass can come, or the limit is reached.

import { orderOf } from "./orders.js";
import { Pocket } from "./pocket.js";

/** @import { KernelMachine, LinearMachine } from "./machine.js" */
/** @import { Mistakes, Settings, Vector } from "./types.js" */

const PASS_CAP = 10_000; // until convergence, on data about which nothing could be proven
const SEPARABLE_PASS_CAP = 200_000; // the same on data that are proven separable
const FIRST_PROOF = { cyclic: 1024, other: 32 }; // a proof is looked for after so many passes, and again as they double

/**
 * @typedef {{
 *   steps: number[], starts: number[], mistakes: Mistakes, path: Float64Array[] | null, perPass: number[], nSteps: number, nMistakes: number,
 *   nextMistake: number | null, errors: number, pocketWeights: Float64Array | null, converged: boolean, cycle: [number, number] | null, ended: string, scores: number[], kept: number | null, verdict: string,
 * }} Training
 * @typedef {{ steps: number, mistakes: number }} Limits how much of a run is recorded
 */

/** Brent's algorithm on the state at the start of each pass: an equal state means that the run repeats for ever. */
class CycleFinder {
  constructor() {
    /** @type {Float64Array | null} */
    this._saved = null;
    this._power = 1;
    this._lag = 1;
  }

  /** @param {Float64Array} state @returns {number | null} the period, once the state has come back */
  period(state) {
    const saved = this._saved;
    if (saved) {
      if (same(state, saved)) return this._lag;
      if (this._lag < this._power) {
        this._lag += 1;
        return null;
      }
      [this._power, this._lag] = [2 * this._power, 1];
    }
    this._saved = state;
    return null;
  }
}

/** @param {Float64Array} a @param {Float64Array} b */
function same(a, b) {
  for (let j = 0; j < a.length; j += 1) if (a[j] !== b[j]) return false;
  return true;
}

/** @param {Float64Array} state @returns {number} 53 bits that stand for a state, in which −0 is 0 */
function digest(state) {
  const words = new Uint32Array(Float64Array.from(state, (value) => value + 0).buffer);
  let [high, low] = [0xdeadbeef, 0x41c6ce57];
  for (const word of words) {
    high = Math.imul(high ^ word, 2654435761);
    low = Math.imul(low ^ word, 1597334677);
    [high, low] = [high ^ (low >>> 15), low ^ (high >>> 13)];
  }
  return 4294967296 * (2097151 & low) + (high >>> 0);
}

/**
 * A training, which yields after each pass, so that the caller can wait or stop.
 * @param {LinearMachine | KernelMachine} machine
 * @param {Vector[] | null} Z φ(x) of the examples, with a 1 for the bias; null for a kernel
 * @param {number[]} codes
 * @param {Settings} settings
 * @param {Limits} limits
 * @param {{ prove: () => string, accuracy: ((run: Training) => number) | null }} asks
 * @returns {Generator<number, Training>}
 */
export function* training(machine, Z, codes, settings, limits, { prove, accuracy }) {
  const n = codes.length;
  const cyclic = settings.order === "cyclic";
  const endless = settings.passes === 0;
  const record = ["perceptron", "margin"].includes(settings.rule) ? null : /** @type {number[]} */ ([]);
  /** @type {Training} */
  const run = {
    steps: [], starts: [], mistakes: { step: [], up: [], down: [], by: record }, path: Z ? [/** @type {LinearMachine} */ (machine).w.slice()] : null, perPass: [],
    nSteps: 0, nMistakes: 0, nextMistake: null, errors: 0, pocketWeights: null, converged: false, cycle: null, ended: "", scores: [], kept: null, verdict: "undecided",
  };
  const finder = cyclic && !settings.spread ? new CycleFinder() : null;
  const pocket = settings.learner === "pocket" && Z ? new Pocket(/** @type {LinearMachine} */ (machine), Z, codes, settings) : null;
  /** @type {number[]} */
  const digests = []; // of the state at the start of each pass
  let nextProof = cyclic ? FIRST_PROOF.cyclic : FIRST_PROOF.other;
  // A linear machine is shown vectors, a machine with a kernel the numbers of examples.
  const shown = /** @type {any[]} */ (Z ?? codes.map((_, i) => i));
  for (;;) {
    if (finder && !run.cycle) {
      const state = machine.state();
      digests.push(digest(state));
      const period = finder.period(state);
      if (period) run.cycle = [1 + digests.findIndex((each, p) => each === digests[p + period]), period];
    }
    if (endless && run.cycle) run.ended = "cycle";
    if (endless && !run.ended && run.perPass.length === nextProof && run.verdict === "undecided") {
      run.verdict = prove();
      nextProof *= 2;
    }
    if (endless && !run.ended && ["inseparable", "touching"].includes(run.verdict)) run.ended = "proof";
    if (run.ended) break;
    const before = run.nMistakes;
    run.starts.push(run.nSteps);
    for (const i of orderOf(settings.order, n, settings.seed, run.perPass.length)) {
      run.nSteps += 1;
      if (run.steps.length < limits.steps) run.steps.push(i);
      const correction = machine.present(shown[i], codes[i]);
      if (!correction) continue;
      run.nMistakes += 1;
      if (correction.missed) run.errors += 1;
      pocket?.note(run.nSteps, /** @type {LinearMachine} */ (machine));
      if (run.mistakes.step.length < limits.mistakes && run.nSteps <= limits.steps) {
        run.mistakes.step.push(run.nSteps);
        run.mistakes.up.push(correction.up);
        run.mistakes.down.push(correction.down);
        record?.push(correction.by);
        run.path?.push(/** @type {LinearMachine} */ (machine).w.slice());
      } else run.nextMistake ??= run.nSteps;
    }
    run.perPass.push(run.nMistakes - before);
    machine.check();
    if (pocket) [run.kept, run.pocketWeights] = [pocket.afterPass(run.nSteps), pocket.best];
    if (accuracy) run.scores.push(accuracy(run));
    // A pass without a mistake shows that no example is one, unless the examples were drawn.
    if (run.nMistakes === before && (settings.order !== "random" || codes.every((code, i) => !machine.judge(shown[i], code)))) {
      run.converged = true;
      run.ended = "clean";
    } else if (run.perPass.length >= passLimit(settings, run.verdict)) run.ended = "limit";
    if (run.ended) break;
    yield run.perPass.length;
  }
  if (pocket) run.kept = pocket.afterTraining();
  return run;
}

/** @param {Settings} settings @param {string} verdict */
function passLimit({ passes, asks }, verdict) {
  if (passes) return passes;
  return verdict === "separable" && asks !== "loss" ? SEPARABLE_PASS_CAP : PASS_CAP;
}
