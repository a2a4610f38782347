// The comparison that a rule makes at a step, and its result, in words.

import { label, num } from "./formatting.js";

/** @import { Made, Run } from "./run.js" */

/**
 * @param {Run} run
 * @param {Made} now
 */
export function judged(run, now) {
  const { rule, tie } = run.doc;
  const what = run.K === 1 ? "y·score" : "lead";
  const amount = num(now.lead);
  if (rule.asks === "margin") return `${what} = ${amount} ${now.mistake ? "≤" : ">"} margin ${num(rule.margin)}`;
  if (rule.asks === "loss") {
    const loss = `loss = max(0, 1 − ${what}) = ${num(Math.max(0, 1 - now.lead))}`;
    const x = run.doc.map.kind === "none" ? "x" : "φ(x)";
    return now.mistake || now.lead >= 1 ? loss : `${loss}, but ${x} is 0: no correction lowers it`;
  }
  if (now.lead === 0) {
    if (tie === "mistake") return run.K === 1 ? "a score of 0 is a mistake" : "a tie is a mistake";
    if (run.K === 1) return `a score of 0 means ${label(run.classes, tie === "+1" ? 1 : 0)}`;
    return "a tie predicts the first class";
  }
  return `${what} = ${amount} ${now.lead > 0 ? ">" : "<"} 0`;
}
