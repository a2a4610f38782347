// What the quiz asks before a step of whatever recipe, and the sentence that explains the step after it.

import { label } from "./formatting.js";
import { judged } from "./judgement.js";

/** @import { Made, Run } from "./run.js" */

/**
 * @typedef {{ text: string, right: boolean }} Choice
 * @typedef {{ ask: string, choices: Choice[] }} Question
 */

const MOST_CHOICES = 8; // of more classes, those with the highest scores are offered

/** @param {Run} run what a correction adds to the weights: the example, as the learner sees it */
function added({ doc }) {
  const x = doc.map.kind === "none" ? "x" : "φ(x)";
  if (doc.rule.spread) return `τ·Σ${x}`;
  return doc.rule.asks === "loss" ? `τ·${x}` : x;
}

/** @param {Run} run the question whether a step is a mistake, in the words of the rule */
function asksForMistake({ K, doc }) {
  const what = K === 1 ? "y·score" : "lead";
  if (doc.rule.asks === "margin") return `Is it a mistake (${what} at most the margin ${doc.rule.margin}), or right?`;
  if (doc.rule.asks === "loss") return `Is it a mistake (${what} below 1, so that it has a loss), or right?`;
  return "Is it a mistake, or is it classified right?";
}

/**
 * The classes that are offered: all, or the likeliest, in their own order.
 * @param {Made} now
 * @param {number} K
 */
function offered(now, K) {
  const classes = Array.from({ length: K }, (_, c) => c);
  const byScore = [...classes].sort((a, b) => Number(b === now.y || b === now.rival) - Number(a === now.y || a === now.rival) || now.scores[b] - now.scores[a]);
  return byScore.slice(0, MOST_CHOICES).sort((a, b) => a - b);
}

/**
 * The questions about a step, in the order in which they are asked: whether it is a mistake, and if it is, what changes.
 * @param {Run} run
 * @param {Made} now the step
 * @returns {Question[]}
 */
export function questionsAbout(run, now) {
  const first = { ask: asksForMistake(run), choices: [{ text: "a mistake", right: now.mistake }, { text: "right", right: !now.mistake }] };
  if (!now.mistake) return [first];
  if (run.K === 1 && run.dual) {
    const alpha = `α of example ${now.example}`;
    return [first, { ask: "What changes?", choices: [{ text: `${alpha} rises by 1`, right: now.y === 1 }, { text: `${alpha} falls by 1`, right: now.y === 0 }, { text: "every α changes", right: false }] }];
  }
  if (run.K === 1) {
    const x = added(run);
    const along = run.doc.rule.spread ? x.slice(2) : x.replace("τ·", "");
    return [first, { ask: "Which way does w turn?", choices: [{ text: `towards ${along}: w ← w + ${x}`, right: now.y === 1 }, { text: `away from ${along}: w ← w − ${x}`, right: now.y === 0 }] }];
  }
  const which = (/** @type {number} */ right, /** @type {number[]} */ classes) => classes.map((c) => ({ text: label(run.classes, c), right: c === right }));
  const classes = offered(now, run.K);
  const [raised, lowered] = run.dual
    ? [`Of which class does α of example ${now.example} rise by 1?`, "And of which class does it fall by 1?"]
    : [`Which class is raised: w ← w + ${added(run)}?`, `And which class is lowered: w ← w − ${added(run)}?`];
  return [first, { ask: raised, choices: which(now.y, classes) }, { ask: lowered, choices: which(now.rival, classes.filter((c) => c !== now.y)) }];
}

/**
 * What a step was, why, and what it changed.
 * @param {Run} run
 * @param {Made} now
 */
export function explanation(run, now) {
  const fact = `step ${now.t} is ${now.mistake ? "a mistake" : "right"} (${judged(run, now)})`;
  if (!now.mistake) return `${fact}, so nothing changes.`;
  const [own, rival] = [label(run.classes, now.y), label(run.classes, now.rival)];
  if (run.dual) {
    const alpha = `α of example ${now.example}`;
    return run.K === 1 ? `${fact}, so ${alpha} ${now.y === 1 ? "rises" : "falls"} by 1.` : `${fact}, so ${alpha} rises by 1 for ${own} and falls by 1 for ${rival}.`;
  }
  const x = added(run).replace("τ·", "");
  return run.K === 1 ? `${fact}, so w turns ${now.y === 1 ? "towards" : "away from"} ${x}.` : `${fact}, so w[${own}] is raised and w[${rival}] is lowered by ${added(run)}.`;
}
