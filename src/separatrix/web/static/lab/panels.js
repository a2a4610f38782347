// The panels beside the picture: this step, the proof, the certificate, the passes.

import { passesChart, proofChart, updateChart } from "./charts.js";
import { h, put } from "./dom.js";
import { largest } from "./engine/extremes.js";
import { count, label, num, products, vec } from "./formatting.js";
import { judged } from "./judgement.js";

/** @import { Changed, Child } from "./dom.js" */
/** @import { Made, Run } from "./run.js" */

const MOST_CLASSES = 10; // of more, the table of weights shows the two that matter at the step

/** @param {string} id @param {string} name @param {...Child} value */
function fact(id, name, ...value) {
  return h("div", { class: "fact" }, h("dt", null, name), h("dd", { id }, ...value));
}

/** @param {number} y */
function sign(y) {
  return y === 1 ? "+" : "−";
}

/** @param {Run} run @param {Made} now */
function scoreLines(run, now) {
  if (run.dual) return dualScore(run, now);
  const z = run.phiOf(now.example);
  const space = run.doc.map.kind === "none" ? "x" : "φ(x)";
  const name = (/** @type {number} */ c) => (run.K === 1 ? "w" : `w[${label(run.classes, c)}]`);
  const written = (/** @type {number} */ c) => {
    const w = run.weights(now.before, c);
    const sum = run.doc.bias
      ? `⟨${name(c)},${space}⟩ + b = ${products(w.slice(0, run.D), z.slice(0, run.D))} + ${num(w[run.D]).replace(/^−(.*)/, "(−$1)")}`
      : `⟨${name(c)},${space}⟩ = ${products(w, z)}`;
    return h("p", { class: "sum" }, sum, " = ", h("strong", null, num(now.scores[c])));
  };
  if (run.K === 1) return [written(0)];
  const lead = `lead of ${label(run.classes, now.y)} over ${label(run.classes, now.rival)}: `;
  const gap = h("p", { class: "sum" }, `${lead}${num(now.scores[now.y])} − ${num(now.scores[now.rival]).replace(/^−(.*)/, "(−$1)")} = `, h("strong", null, num(now.lead)));
  return [written(now.y), written(now.rival), gap];
}

/** @param {Run} run @param {Made} now */
function dualScore(run, now) {
  const terms = [];
  for (let m = 0; m < now.before; m += 1) {
    const value = run.kernel(run.mistakenExample(m), now.example);
    const gains = new Array(run.K).fill(0);
    run.credit(m, 1, gains);
    terms.push({ gain: run.K === 1 ? gains[0] : gains[now.y], value });
  }
  const nonzero = terms.filter((t) => t.gain !== 0);
  const few = nonzero.slice(-4).map((t) => `${t.gain > 0 ? "+" : "−"} ${num(t.value)}`);
  const summands = nonzero.length > 4 ? ["…", ...few] : few;
  const sum = summands.join(" ").replace(/^\+ /, "") || "0 (no mistake yet)";
  return [
    h("p", { class: "sum" }, `Σ ±k(mistake, x) = ${sum} = `, h("strong", null, num(run.K === 1 ? now.scores[0] : now.scores[now.y]))),
    run.K > 1 ? h("p", { class: "sum" }, `lead over ${label(run.classes, now.rival)}: `, h("strong", null, num(now.lead))) : null,
  ];
}

/** @param {Run} run @param {Made} now */
function namedTable(run, now) {
  const named = run.doc.map.kind === "none" && !run.dual && run.doc.features.some((name) => !/^x[₀-₉]+$/.test(name));
  if (!named || run.D > 64) return null;
  const c = run.K === 1 ? 0 : now.y;
  const w = run.weights(now.before, c);
  const z = run.phiOf(now.example);
  const rows = run.doc.features
    .map((name, j) => ({ name, w: w[j], x: z[j] }))
    .sort((a, b) => Math.abs(b.w * b.x) - Math.abs(a.w * a.x))
    .slice(0, 5);
  const head = run.K === 1 ? "feature" : `feature, for ${label(run.classes, c)}`;
  return h("table", { class: "terms" },
    h("thead", null, h("tr", null, [head, "weight", "value", "product"].map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", null, rows.map((row) => h("tr", null, h("th", { scope: "row" }, row.name), h("td", null, num(row.w)), h("td", null, num(row.x)), h("td", null, num(row.w * row.x))))),
  );
}

/** @param {Run} run @param {Made} now */
function updateLines(run, now) {
  const tilde = run.doc.bias ? "(φ, 1)" : "φ";
  const x = run.doc.map.kind === "none" ? (run.doc.bias ? "x̃" : "x") : tilde;
  const by = run.by(now.k - 1);
  const times = by === 1 ? "" : `${num(by)}·`;
  if (run.dual) return [h("p", { class: "sum" }, `example ${now.example} is added to the sum with sign ${sign(now.y)}`)];
  const z = run.phiOf(now.example);
  const update = (/** @type {number} */ c, /** @type {string} */ plus) => {
    const name = run.K === 1 ? "w" : `w[${label(run.classes, c)}]`;
    const [old, fresh] = [run.weights(now.k - 1, c), run.weights(now.k, c)];
    if (run.doc.rule.spread) return h("p", { class: "sum" }, `${name} moves along Σ${x}: ${vec(old)} → ${vec(fresh)}`);
    return h("p", { class: "sum" }, `${name} ← ${name} ${plus} ${times}${x} = ${vec(old)} ${plus} ${times}${vec(z)} = `, h("strong", null, vec(fresh)));
  };
  if (run.K === 1) return [update(0, sign(now.y))];
  return [update(now.y, "+"), update(now.rival, "−")];
}

/** @param {Run} run @param {Made} now @param {string} named */
function weightsTable(run, now, named) {
  const changed = (/** @type {number} */ c) => now.mistake && (c === now.y || c === now.rival);
  const shown = run.classes.map((_, c) => c).filter((c) => run.K <= MOST_CLASSES || c === now.y || c === now.rival);
  return [h("table", { class: "weights" },
    h("thead", null, h("tr", null, [named, "before", "after"].map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", null, shown.map((c) => h("tr", { class: changed(c) ? "changed" : null },
      h("th", { scope: "row" }, label(run.classes, c)), h("td", null, vec(run.weights(now.before, c), 5)), h("td", null, vec(run.weights(now.k, c), 5)))))),
  shown.length < run.K ? h("p", { class: "quiet" }, `The weights of the other ${run.K - shown.length} classes do not change.`) : null];
}

/** w on the plane of the picture, for the vector picture. @param {Run} run @param {ArrayLike<number>} w */
function onPlane(run, w) {
  const { plane } = run.doc;
  if (plane.kind === "augmented") return [w[0], w[1]];
  return plane.across.map((direction) => direction.reduce((sum, value, j) => sum + value * w[j], 0));
}

/** @param {HTMLElement} panel @param {Run} run @param {number} t */
export function stepPanel(panel, run, t) {
  const now = run.at(t);
  const w = (/** @type {number} */ k) => (run.dual ? `a sum of ${count(k, "mistake")}` : vec(run.weights(k)));
  const named = run.doc.bias && !run.dual ? "(w, b)" : "w";
  if (!run.steps) {
    put(panel, h("h2", null, "Draw"), h("p", { class: "say" }, "Click to add a point of the chosen class; drag a point to move it. As soon as there are two classes, the perceptron is trained on the points."));
    return;
  }
  if (now.example === null) {
    put(panel, h("h2", null, "Before the first step"),
      h("p", { class: "say" }, run.dual ? "No mistake yet: every score is 0." : `Training starts from ${named} = 0: every score is 0.`),
      h("p", { class: "quiet" }, "→ and ← move by one example, ↓ and ↑ by one mistake; space plays."),
      run.K === 1 ? h("dl", { class: "facts" }, fact("w-after", named, w(0))) : null);
    return;
  }
  const y = run.doc.y[now.example];
  const chip = h("span", { class: now.mistake ? "chip bad" : "chip good", id: "verdict" }, now.mistake ? `mistake ${now.k}` : "right");
  const drawable = now.mistake && !run.dual && run.doc.map.kind === "none" && run.K === 1;
  put(panel,
    h("h2", null, `Step ${t.toLocaleString("en")} `, h("small", null, `pass ${now.pass}, example ${now.example}`)),
    h("dl", { class: "facts" }, fact("x", "x", vec(run.doc.x[now.example])), fact("y", "label y", h("span", { class: `label c${y % 7}` }, label(run.classes, y)))),
    h("h3", null, "Score"),
    h("div", { id: "score" }, scoreLines(run, now)),
    namedTable(run, now),
    h("p", { class: "verdict" }, chip, " ", judged(run, now)),
    h("h3", null, now.mistake ? "Update" : "No update"),
    now.mistake ? h("div", { id: "update" }, updateLines(run, now)) : null,
    drawable ? updateChart(onPlane(run, run.weights(now.k - 1)), `${sign(y)} ${run.by(now.k - 1) === 1 ? "" : "τ·"}x`, onPlane(run, run.weights(now.k))) : null,
    run.K === 1 || run.dual
      ? h("dl", { class: "facts" }, fact("w-before", `${named} before`, w(now.before)), fact("w-after", `${named} after`, w(now.k)))
      : weightsTable(run, now, named),
  );
}

/** @param {number} left @param {string} sign @param {number} right */
function holds(left, sign, right) {
  const fine = sign === "≤" ? left <= right * (1 + 1e-9) + 1e-12 : left >= right * (1 - 1e-9) - 1e-12;
  return h("span", { class: fine ? "tick-mark" : "cross-mark" }, fine ? " ✓" : " ✗");
}

/** @param {HTMLElement} panel @param {Run} run @param {number} t @param {boolean} whole @param {(on: boolean) => void} onWhole */
export function proofPanel(panel, run, t, whole, onWhole) {
  const k = run.mistakesAt(t);
  const { doc } = run;
  const lines = run.proof(k);
  const R2 = doc.R2 ?? (doc.proof ? run.kernelR2() : null);
  const head = h("h2", null, "The proof ", h("small", null, `after ${count(k, "mistake")}`));
  /** @type {Element[]} */
  const content = [head, proofChart(run, k, whole)];
  if (!doc.proof) {
    content.push(h("p", { class: "say" }, `The proof is for the perceptron rule only. Here ‖w‖² = ${num(lines.norm2)}.`));
  } else {
    const cap = run.K > 1 ? "2R²" : "R²";
    content.push(h("p", { class: "line", id: "line-1" }, h("b", { class: "upper" }, "1 "), `‖w‖² = ${num(lines.norm2)} ≤ k·${cap} = ${k}·${num(R2)} = ${num(lines.kR2)}`, holds(lines.norm2, "≤", lines.kR2 ?? 0)));
    if (doc.separator) {
      const gamma = doc.separator.gamma;
      content.push(
        h("p", { class: "line", id: "line-2" }, h("b", { class: "lower" }, "2 "), `⟨w,u⟩ = ${num(lines.progress)} ≥ k·γ = ${k}·${num(gamma)} = ${num(lines.kGamma)}`, holds(lines.progress ?? 0, "≥", lines.kGamma ?? 0)),
        h("p", { class: "line", id: "between" }, `k²γ² = ${num(lines.k2Gamma2)} ≤ ‖w‖² = ${num(lines.norm2)} ≤ k·${cap} = ${num(lines.kR2)}`),
        h("p", { class: "line", id: "bound" }, `so k ≤ ${cap}/γ² = `, h("strong", null, num(run.bound)), `. Here k = `, h("strong", null, num(k)), "."),
        h("progress", { max: Math.max(run.bound ?? 0, 1), value: k, "aria-label": `${k} mistakes of at most ${run.bound}` }),
        h("label", { class: "switch" }, h("input", { type: "checkbox", id: "whole", checked: whole, onchange: (/** @type {Changed} */ e) => onWhole(e.target.checked) }), " extend to the intersection"),
      );
    } else {
      content.push(h("p", { class: "say" }, whyNoMargin(run)));
    }
  }
  if (doc.bounds.length) {
    content.push(h("details", null, h("summary", null, "Theorems about the whole run"),
      h("ul", { id: "theorems" }, doc.bounds.map((b) => h("li", null, `${b.theorem}: ${b.quantity} ${num(b.made)} ≤ ${num(b.possible)}`)))));
  }
  put(panel, content);
}

/** @param {Run} run one whose proof has no second line */
function whyNoMargin({ dual, doc }) {
  if (dual) return "The margin in the kernel's space is not computed, so line 2 has no numbers.";
  if (doc.certificate?.verdict === "separable") return "The data are separable, but γ is too small for floating point, so line 2 has no numbers.";
  if (doc.certificate?.verdict === "undecided") return "Whether the data are separable was not decided in time, so no γ is known: line 2 has no numbers.";
  return "The data are not separable, so there is no γ: line 2 does not apply, and k is not bounded.";
}

/** @param {Run} run */
export function outcome(run) {
  const { doc } = run;
  const k = count(doc.n_mistakes, doc.rule.asks === "sign" ? "mistake" : "correction");
  const passes = doc.mistakes_per_pass.length;
  const sentences = [];
  if (doc.converged) {
    const w = run.dual ? "" : run.K === 1 && run.width <= 8 && doc.complete ? `: w = ${vec(run.weights(run.m), 8)} separates the examples` : "";
    sentences.push(`Pass ${passes} is clean${w}, after ${k}.`);
  } else sentences.push(`After ${count(passes, "pass", "passes")} and ${k} there has been no clean pass.`);
  if (doc.cycle) {
    const [start, period] = doc.cycle;
    const what = run.dual ? "scores" : "weights";
    sentences.push(`The ${what} at the start of pass ${start} come back ${period === 1 ? "every pass" : `every ${period} passes`}: a cycle, so training never ends.`);
  }
  if (!doc.complete) sentences.push(`Only the first ${count(run.steps, "step")} of ${doc.n_steps.toLocaleString("en")} are shown.`);
  return sentences.join(" ");
}

/** @param {HTMLElement} panel @param {Run} run */
export function certificatePanel(panel, run) {
  const { certificate, cycle, max_margin: maxMargin } = run.doc;
  const end = h("p", { class: "say", id: "outcome" }, outcome(run));
  if (!certificate) {
    put(panel, h("h2", null, "Is it separable?"), end, h("p", { class: "say" }, "Certificates exist for linear boundaries, with or without a feature map, but not for kernels."));
    return;
  }
  const good = certificate.verdict === "separable";
  const [, ...lines] = certificate.lines;
  put(panel,
    h("h2", null, "Is it separable? ", h("span", { class: good ? "chip good" : "chip bad", id: "certificate" }, certificate.verdict)),
    end,
    cycle ? h("p", { class: "chips" }, h("span", { class: "chip bad", id: "cycle" }, `cycle: from pass ${cycle[0]}, period ${count(cycle[1], "pass", "passes")}`)) : null,
    certificate.witness.length
      ? h("div", { id: "witness" }, h("h3", null, "Witness"), h("p", { class: certificate.witness.length > 4 ? "say" : "sum" }, certificate.witness.slice(0, 8).map((w) => `${w.weight} × example ${w.row}${run.K > 1 ? ` against ${label(run.classes, w.rival)}` : ""}`).join(" + ") + (certificate.witness.length > 8 ? " + …" : "") + " = 0"))
      : null,
    maxMargin ? h("p", { class: "say", id: "street" }, `The widest margin, ${num(maxMargin.margin)}, is determined by ${maxMargin.support.length <= 8 ? `examples ${maxMargin.support.join(", ")}` : count(maxMargin.support.length, "example")}.`) : null,
    h("details", null, h("summary", null, "The certificate in words"), h("ul", null, lines.map((line) => h("li", null, line)))),
  );
}

/** @param {HTMLElement} panel @param {Run} run @param {number} t */
export function passesPanel(panel, run, t) {
  const { doc } = run;
  const pass = run.passAt(t);
  const scores = doc.held_out;
  const best = scores ? largest(scores) : 0;
  const percent = (/** @type {number} */ value) => `${num(Math.round(value * 1000) / 10)} %`;
  put(panel,
    h("h2", null, "Passes ", h("small", null, `${doc.rule.asks === "sign" ? "mistakes" : "corrections"} in each`)),
    passesChart(run, pass),
    scores
      ? h("p", { class: "say", id: "held-out" }, `Held-out accuracy on ${count(doc.x.length - doc.n_train, "example")}: `, pass ? `${percent(scores[pass - 1])} after pass ${pass}, ` : "", `best ${percent(best)} after pass ${scores.indexOf(best) + 1}.`)
      : null,
  );
}
