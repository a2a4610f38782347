// Exports: the picture, the trace as CSV, the Python program.

import { save } from "./dom.js";
import { cell } from "./formatting.js";

/** @import { Run } from "./run.js" */

const COLUMNS = ["pass", "step", "example", "label", "score", "mistake", "rival", "w", "k", "norm2", "k_R2", "progress", "k_gamma", "k2_gamma2"];

/** One line per step, as `separatrix trace --format csv` writes it. @param {Run} run */
export function traceCsv(run) {
  const lines = [COLUMNS.join(",")];
  for (let t = 1; t <= run.steps; t += 1) {
    const now = run.made(t);
    const proof = now.mistake ? run.proof(now.k) : null;
    const row = [
      now.pass,
      t,
      now.example,
      run.classes[now.y],
      run.K === 1 ? now.scores[0] : now.lead,
      now.mistake,
      now.mistake ? run.classes[now.rival] : null,
      run.dual ? null : weightsText(run, now.k),
      ...(proof ? [now.k, proof.norm2, proof.kR2, proof.progress, proof.kGamma, proof.k2Gamma2] : new Array(6).fill(null)),
    ];
    lines.push(row.map(cell).join(","));
  }
  return lines.join("\n") + "\n";
}

/** @param {Run} run @param {number} k */
function weightsText(run, k) {
  const outputs = Array.from({ length: run.K }, (_, c) => Array.from(run.weights(k, c)));
  return JSON.stringify(run.K === 1 ? outputs[0] : outputs);
}

/** @param {HTMLCanvasElement} canvas @param {string} name */
export function savePng(canvas, name) {
  canvas.toBlob((blob) => blob && save(name, blob), "image/png");
}

/** @param {Run} run @param {string} end */
export function fileName(run, end) {
  const base = run.doc.name.replace(/[^\w.-]+/g, "-").replace(/^-+|-+$/g, "") || "run";
  return `${base}.${end}`;
}
