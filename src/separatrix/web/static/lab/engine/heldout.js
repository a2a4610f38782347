// The accuracy on held-out examples after a pass, with the weights that the learner predicts with.

import { RecipeError } from "./errors.js";
import { decidedWrong } from "./machine.js";
import { dot } from "./maps.js";

/** @import { KernelMachine, LinearMachine } from "./machine.js" */
/** @import { Training } from "./training.js" */
/** @import { Settings, Vector } from "./types.js" */

/**
 * A function that is called after each pass and returns the accuracy.
 * @param {LinearMachine | KernelMachine} machine
 * @param {Vector[]} tests φ(x) with a 1 for the bias; for a kernel the values k(xᵢ, x) with the training examples
 * @param {number[]} codes
 * @param {Settings} settings
 * @param {string} predicts "last", "averaged", "voted" or "pocket"
 * @returns {(run: Training) => number}
 */
export function heldOutAccuracy(machine, tests, codes, settings, predicts) {
  const tie = settings.tie === "mistake" ? "-1" : settings.tie; // a prediction of 0 goes to the first class, unless `tie` says otherwise
  const share = (/** @type {(z: Vector, i: number) => number[]} */ scores) => tests.filter((z, i) => !decidedWrong(codes[i], scores(z, i), machine.outputs > 1 ? "first" : tie)).length / tests.length;
  if ("gram" in machine) return () => share((row) => machine.alpha.map((alpha) => dot(alpha, row)));
  const under = (/** @type {ArrayLike<number>} */ w) => (/** @type {Vector} */ z) => Array.from({ length: machine.outputs }, (_, k) => dot(w, z, k * machine.width));
  if (predicts === "last") return () => share(under(machine.w));
  if (predicts === "pocket") return (run) => share(under(run.pocketWeights ?? machine.w));
  // Sums over the weights that were corrected already; each pass adds its own, and counts those that still last.
  let counted = 0;
  let sum = machine.w.map(() => 0);
  let ballots = tests.map(() => new Array(machine.outputs).fill(0));
  return (run) => {
    const path = /** @type {Float64Array[]} */ (run.path);
    if (run.nMistakes >= path.length) throw new RecipeError("so many corrections cannot be averaged or voted on held-out examples: choose fewer passes");
    const lasted = (/** @type {number} */ k) => (run.mistakes.step[k] ?? run.nSteps + 1) - (k === 0 ? 1 : run.mistakes.step[k - 1]);
    const added = (/** @type {number} */ k) => sum.map((value, j) => value + lasted(k) * path[k][j]);
    const voted = (/** @type {number} */ k) => ballots.map((votes, i) => {
      const more = ballot(under(path[k])(tests[i]), lasted(k));
      return votes.map((value, c) => value + more[c]);
    });
    const isAverage = predicts === "averaged";
    for (; counted < run.nMistakes; counted += 1) {
      if (isAverage) sum = added(counted);
      else ballots = voted(counted);
    }
    if (isAverage) return share(under(added(counted).map((value) => value / run.nSteps)));
    const votes = voted(counted);
    return share((_, i) => votes[i]);
  };
}

/** @param {number[]} scores @param {number} times @returns {number[]} the votes of one weight vector; a tie abstains */
function ballot(scores, times) {
  if (scores.length === 1) return [times * Math.sign(scores[0])];
  const top = Math.max(...scores);
  const alone = scores.filter((score) => score === top).length === 1;
  return scores.map((score) => (alone && score === top ? times : 0));
}
