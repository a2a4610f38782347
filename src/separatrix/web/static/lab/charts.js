// The small charts beside the picture: the proof, the update, the passes.

import { s } from "./dom.js";
import { largest, smallest } from "./engine/extremes.js";
import { ticks } from "./frame.js";
import { count, num } from "./formatting.js";

/** @import { Run } from "./run.js" */

const MOST_BARS = 100;

/** @param {number} width @param {number} height @param {string} title */
function canvas(width, height, title) {
  return s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title, class: "chart" });
}

/** @param {number} from @param {number} to @param {number} low @param {number} high */
function scaled(from, to, low, high) {
  return (/** @type {number} */ value) => low + ((value - from) / (to - from || 1)) * (high - low);
}

/** @param {number[][]} points @param {string} className */
function line(points, className) {
  return s("polyline", { points: points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" "), class: className });
}

/** @param {string} text @param {number} x @param {number} y @param {string} className */
function words(text, x, y, className, anchor = "start") {
  return s("text", { x, y, class: className, "text-anchor": anchor }, text);
}

/** A number on an axis: 20K, 1.5M. @param {number} value */
function short(value) {
  return value >= 1e4 ? new Intl.NumberFormat("en", { notation: "compact" }).format(value) : num(value);
}

/** @param {number} n */
function thinned(n, most = 400) {
  const every = Math.max(1, Math.ceil(n / most));
  const out = [];
  for (let k = 0; k <= n; k += every) out.push(k);
  if (out.at(-1) !== n) out.push(n);
  return out;
}

/**
 * ‖w‖² between k²γ² and k·R², up to the number of mistakes made, or up to where the two lines cross.
 * @param {Run} run
 * @param {number} k
 * @param {boolean} whole
 */
export function proofChart(run, k, whole) {
  const [width, height] = [420, 210];
  const box = { left: 46, right: 54, top: 12, bottom: 30 };
  const bound = run.bound;
  const R2 = run.doc.R2 ?? run.kernelR2();
  const gamma2 = run.doc.separator ? run.doc.separator.gamma ** 2 : null;
  const cross = whole && bound !== null && gamma2 !== null ? R2 / gamma2 : null;
  const far = cross === null ? Math.max(run.m, 1) : Math.max(run.m, cross * 1.04);
  const applies = run.doc.proof;
  const ks = thinned(run.m);
  const norms = ks.map((j) => run.proof(j).norm2);
  const top = Math.max(...norms, applies ? far * R2 : 0, 1e-9) * 1.04;
  const x = scaled(0, far, box.left, width - box.right);
  const y = scaled(0, top, height - box.bottom, box.top);
  const chart = canvas(width, height, `‖w‖² after ${count(k, "mistake")}, between k²γ² and k·R²`);
  for (const value of ticks(0, top, 4)) {
    chart.append(s("line", { x1: box.left, x2: width - box.right, y1: y(value), y2: y(value), class: "grid" }));
    chart.append(words(short(value), box.left - 6, y(value) + 4, "tick", "end"));
  }
  for (const value of ticks(0, far, 6).filter(Number.isInteger)) {
    chart.append(words(short(value), x(value), height - box.bottom + 15, "tick", "middle"));
  }
  chart.append(words("mistakes k", (box.left + width - box.right) / 2, height - 2, "axis", "middle"));
  const end = width - box.right + 6;
  const names = /** @type {{ text: string, at: number, kind: string }[]} */ ([]);
  if (applies) {
    chart.append(line([[x(0), y(0)], [x(far), y(far * R2)]], "upper"));
    names.push({ text: run.K > 1 ? "k·2R²" : "k·R²", at: y(far * R2), kind: "upper" });
    if (gamma2 !== null) {
      const curve = Array.from({ length: 61 }, (_, i) => (far * i) / 60);
      chart.append(line(curve.map((j) => [x(j), y(j * j * gamma2)]), "lower"));
      names.push({ text: "k²γ²", at: y(far * far * gamma2), kind: "lower" });
    }
    if (cross !== null) {
      chart.append(s("circle", { cx: x(cross), cy: y(cross * R2), r: 4.5, class: "crossing" }));
      chart.append(words(`R²/γ² = ${num(cross)}`, x(cross) - 9, y(cross * R2) - 5, "tick", "end"));
    }
  }
  chart.append(line(ks.map((j, i) => [x(j), y(norms[i])]), "path"));
  if (run.m <= 60) for (const j of ks) chart.append(s("circle", { cx: x(j), cy: y(run.proof(j).norm2), r: 2.6, class: "dot" }));
  const here = run.proof(k).norm2;
  chart.append(s("line", { x1: x(k), x2: x(k), y1: box.top, y2: height - box.bottom, class: "now" }));
  chart.append(s("circle", { cx: x(k), cy: y(here), r: 5.5, class: "here" }));
  names.push({ text: "‖w‖²", at: y(norms[norms.length - 1]), kind: "path" });
  names.sort((a, b) => a.at - b.at);
  names.forEach((name, i) => {
    if (i && name.at - names[i - 1].at < 19) name.at = names[i - 1].at + 19;
  });
  const over = Math.max(0, (names.at(-1)?.at ?? 0) - (height - box.bottom));
  for (const name of names) chart.append(words(name.text, end, name.at - over + 4, `name ${name.kind}`));
  return chart;
}

/**
 * The old w, the correction appended to it, and the new w, in the coordinates of the plane.
 * @param {number[]} before
 * @param {string} change
 * @param {number[]} after
 */
export function updateChart(before, change, after) {
  const [width, height] = [420, 190];
  const chart = canvas(width, height, "the update: old w, the correction, new w");
  const ends = [[0, 0], before, after];
  const [left, right] = [Math.min(...ends.map((e) => e[0])), Math.max(...ends.map((e) => e[0]))];
  const [low, high] = [Math.min(...ends.map((e) => e[1])), Math.max(...ends.map((e) => e[1]))];
  const scale = Math.min((width - 130) / (right - left || 1e-9), (height - 60) / (high - low || 1e-9));
  const [cx, cy] = [width / 2 - (scale * (left + right)) / 2, height / 2 + (scale * (low + high)) / 2];
  const at = (/** @type {number[]} */ [p, q]) => [cx + scale * p, cy - scale * q];
  const origin = at([0, 0]);
  chart.append(s("line", { x1: 0, x2: width, y1: origin[1], y2: origin[1], class: "grid" }));
  chart.append(s("line", { x1: origin[0], x2: origin[0], y1: 0, y2: height, class: "grid" }));
  const aside = parallel(before, after) ? 5 : 0; // arrows on one line are drawn beside each other
  chart.append(...vector(origin, at(before), "before"), ...vector(at(before), at(after), "change", aside), ...vector(origin, at(after), "after", -aside));
  const name = (/** @type {string} */ text, /** @type {number[]} */ point, /** @type {number[]} */ towards, /** @type {string} */ kind) => {
    const [dx, dy] = [point[0] - towards[0], point[1] - towards[1]];
    const length = Math.hypot(dx, dy) || 1;
    const [x, y] = [point[0] + ((9 + 4 * text.length) * dx) / length, point[1] + (14 * dy) / length + 5];
    chart.append(words(text, Math.min(width - 16, Math.max(16, x)), Math.min(height - 4, Math.max(14, y)), `name ${kind}`, "middle"));
  };
  const same = (/** @type {number[]} */ a, /** @type {number[]} */ b) => Math.hypot(a[0] - b[0], a[1] - b[1]) < 1;
  if (!same(origin, at(before))) name("w", at(before), sidestep(origin, at(before), at(after)), "before");
  if (!same(origin, at(after))) name("w new", at(after), sidestep(origin, at(after), at(before)), "after");
  const [from, to] = [at(before), at(after)];
  const middle = [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2];
  const across = [-(to[1] - from[1]), to[0] - from[0]];
  const size = Math.hypot(...across) || 1;
  const side = (origin[0] - middle[0]) * across[0] + (origin[1] - middle[1]) * across[1] > 0 ? -1 : 1;
  const gap = same(origin, from) ? 26 : 22;
  const spot = [middle[0] + (side * gap * across[0]) / size, middle[1] + (side * 14 * across[1]) / size + 5];
  chart.append(words(change, Math.min(width - 24, Math.max(24, spot[0])), Math.min(height - 4, Math.max(14, spot[1])), "name change", "middle"));
  return chart;
}

/**
 * The point to move a name away from, so that two names at nearly the same end do not overlap.
 * @param {number[]} origin
 * @param {number[]} end
 * @param {number[]} other
 */
function sidestep(origin, end, other) {
  if (Math.hypot(end[0] - other[0], end[1] - other[1]) > 40) return origin;
  return [origin[0] * 0.3 + other[0] * 0.7, origin[1] * 0.3 + other[1] * 0.7];
}

/** @param {number[]} a @param {number[]} b whether they lie on one line, or one of them is 0 */
function parallel(a, b) {
  return Math.abs(a[0] * b[1] - a[1] * b[0]) <= 0.02 * Math.hypot(...a) * Math.hypot(...b);
}

/** @param {number[]} start @param {number[]} end @param {string} kind @param {number} aside how far the arrow is moved sideways */
function vector(start, end, kind, aside = 0) {
  const [dx, dy] = [end[0] - start[0], end[1] - start[1]];
  const length = Math.hypot(dx, dy);
  if (length < 1) return [];
  const normal = [-Math.abs(dy) / length, (dy === 0 ? Math.abs(dx) : dx * Math.sign(dy)) / length]; // the same for both directions of a line
  const [from, to] = [start, end].map(([x, y]) => [x + aside * normal[0], y + aside * normal[1]]);
  const head = Math.min(11, length * 0.6);
  const [ux, uy] = [dx / length, dy / length];
  const base = [to[0] - head * ux, to[1] - head * uy];
  const wing = head * 0.42;
  const corners = [to, [base[0] - wing * uy, base[1] + wing * ux], [base[0] + wing * uy, base[1] - wing * ux]];
  return [
    s("line", { x1: from[0], y1: from[1], x2: base[0], y2: base[1], class: `arrow ${kind}` }),
    s("polygon", { points: corners.map((c) => c.map((v) => v.toFixed(1)).join(",")).join(" "), class: `tip ${kind}` }),
  ];
}

/** The mistakes of each pass, and the accuracy on held-out examples after it. @param {Run} run @param {number} pass */
export function passesChart(run, pass) {
  const [width, height] = [340, 190];
  const box = { left: 34, right: 44, top: 18, bottom: 32 };
  const counts = run.doc.mistakes_per_pass;
  const scores = run.doc.held_out;
  const most = Math.max(1, largest(counts));
  const x = scaled(0.5, counts.length + 0.5, box.left, width - box.right);
  const y = scaled(0, most, height - box.bottom, box.top);
  const chart = canvas(width, height, `mistakes in each of ${counts.length} passes: ${counts.slice(0, 20).join(", ")}`);
  for (const value of ticks(0, most, 3).filter(Number.isInteger)) {
    chart.append(s("line", { x1: box.left, x2: width - box.right, y1: y(value), y2: y(value), class: "grid" }));
    chart.append(words(num(value), box.left - 6, y(value) + 4, "tick", "end"));
  }
  const wide = Math.min(46, ((width - box.left - box.right) / counts.length) * 0.7);
  if (counts.length > MOST_BARS) {
    const every = thinned(counts.length - 1);
    chart.append(line(every.map((p) => [x(p + 1), y(counts[p])]), "path"));
    if (pass) chart.append(s("line", { x1: x(pass), x2: x(pass), y1: box.top, y2: height - box.bottom, class: "now" }));
  } else counts.forEach((n, p) => {
    const high = Math.max(height - box.bottom - y(n), n === 0 ? 2 : 1);
    const kind = p + 1 === pass ? "bar current" : "bar";
    chart.append(s("rect", { x: x(p + 1) - wide / 2, y: height - box.bottom - high, width: wide, height: high, class: kind }));
    if (counts.length <= 10) chart.append(words(num(n), x(p + 1), height - box.bottom - high - 4, "tick", "middle"));
  });
  for (const value of ticks(1, Math.max(counts.length, 2), 6).filter((v) => Number.isInteger(v) && v <= counts.length && v >= 1)) {
    chart.append(words(num(value), x(value), height - box.bottom + 15, "tick", "middle"));
  }
  chart.append(words("pass", (box.left + width - box.right) / 2, height - 2, "axis", "middle"));
  if (scores) {
    const low = Math.max(0, smallest(scores) - 0.05);
    const up = scaled(low, 1, height - box.bottom, box.top);
    chart.append(line(thinned(scores.length - 1).map((p) => [x(p + 1), up(scores[p])]), "accuracy"));
    const best = scores.indexOf(largest(scores));
    chart.append(s("circle", { cx: x(best + 1), cy: up(scores[best]), r: 6, class: "best" }));
    for (const value of [low, 1]) chart.append(words(`${Math.round(value * 100)} %`, width - box.right + 6, up(value) + 4, "tick accuracy-tick"));
  }
  return chart;
}
