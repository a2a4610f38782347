// A certificate in words, as Python's `proofs/wording.py` puts it, and Python's way of writing numbers and labels.

import { toNumber, toText } from "./rationals.js";

/** @import { Certificate } from "./certificate.js" */
/** @import { CertificatePart, Label } from "./types.js" */

const SHOWN = 8;

/**
 * A number with so many digits, as Python's format "g" writes it: JavaScript rounds a digit 5 up, Python to the even digit.
 * @param {number} value
 * @param {number} digits
 */
export function general(value, digits) {
  if (value === 0) return "0";
  const long = value.toExponential(60); // more digits than two neighbouring floats share
  const place = long.indexOf(".") + digits;
  const isHalf = digits > 1 && /^50*$/.test(long.slice(place, long.indexOf("e"))) && Number(long[place - 1]) % 2 === 0;
  const rounded = isHalf ? Number(long.slice(0, place) + long.slice(long.indexOf("e"))) : value;
  const [mantissa, power] = rounded.toExponential(digits - 1).split("e");
  const exponent = Number(power);
  const trimmed = (/** @type {string} */ text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (exponent < -4 || exponent >= digits) return `${trimmed(mantissa)}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  return trimmed(rounded.toFixed(Math.max(0, digits - 1 - exponent)));
}

/** @param {number} value */
function number(value) {
  return general(value, 9).replaceAll("-", "−");
}

/** @param {Label} label as Python's repr() writes it */
export function pythonText(label) {
  if (typeof label === "number") return String(label);
  const quote = label.includes("'") && !label.includes('"') ? '"' : "'";
  const escaped = label.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll("\r", "\\r").replaceAll("\t", "\\t");
  return quote + (quote === "'" ? escaped.replaceAll("'", "\\'") : escaped) + quote;
}

/** @param {number} n @param {string} singular @param {string} [plural] */
function counted(n, singular, plural = `${singular}s`) {
  return `${n.toLocaleString("en")} ${n === 1 ? singular : plural}`;
}

/** @param {bigint} bound */
function boundText(bound) {
  if (bound < 10n ** 24n) return bound.toLocaleString("en");
  const digits = String(bound);
  const head = BigInt(digits.slice(0, 4)) + (/[1-9]/.test(digits.slice(4)) ? 1n : 0n);
  return `${String(head)[0]}.${String(head).slice(1, 4)}e+${digits.length - 1 + (head === 10000n ? 1 : 0)}`;
}

/**
 * @param {Certificate} certificate
 * @param {Label[]} classes
 * @returns {string[]}
 */
export function certificateLines(certificate, classes) {
  const { n, d, nClasses, bias, verdict } = certificate;
  const space = bias ? "(x, 1)" : "x";
  const first = `${verdict}: ${counted(n, "example")}, ${counted(d, "feature")}, ${counted(nClasses, "class", "classes")}, in the space of ${space}`;
  if (verdict === "undecided") return [first, "neither a separator nor a witness was found within the time limit"];
  const describe = { separable: separableLines, touching: touchingLines, inseparable: inseparableLines }[verdict] ?? touchingLines;
  return [first, ...describe(certificate, classes), separationLine(certificate)];
}

/** @param {Certificate} certificate @param {Label[]} classes */
function separableLines(certificate, classes) {
  const { d, nClasses, bias, direction, margin, radius, mistakeBound, geometric } = certificate;
  const [lower, upper] = /** @type {[number, number]} */ (margin);
  const w = direction ?? [];
  const vector = `(${w.slice(0, Math.min(d, SHOWN)).map(number).join(", ")}${d > SHOWN ? `, … ${d} numbers` : ""})`;
  const separator = nClasses === 2
    ? `w = ${vector}${bias ? `, b = ${number(w[d])}` : ""} has ⟨w,x⟩ ${bias ? "+ b " : ""}> 0 exactly on the examples of class ${pythonText(classes[1])}`
    : "there are weights for which each example's own class has strictly the highest score";
  const lines = [
    separator,
    `margin: ${number(lower)} ≤ γ ≤ ${number(upper)}; radius: R = ${number(radius)}`,
    `so a perceptron that starts from 0 makes at most ${nClasses === 2 ? "" : "2"}R²/γ² ≤ ${boundText(mistakeBound ?? 0n)} mistakes on these examples, in any order and any number of passes`,
  ];
  if (geometric && bias) lines.push(`geometric margin (bias not penalised): between ${number(geometric[0])} and ${number(geometric[1])}`);
  return lines;
}

/** @param {Certificate} certificate @param {Label[]} classes */
function weightedRows({ witness, nClasses }, classes) {
  const terms = witness.slice(0, SHOWN).map(({ row, rival, weight }) => {
    const exact = toText(weight);
    const short = weight.q < 10n ** 12n && exact.length <= 12 ? exact : `≈${general(toNumber(weight), 4)}`;
    return `${short} × row ${row}${nClasses > 2 ? ` against ${pythonText(classes[rival])}` : ""}`;
  });
  return terms.join(", ") + (witness.length > SHOWN ? `, … ${witness.length} in all` : "");
}

/** @param {Certificate} certificate @param {Label[]} classes */
function touchingLines(certificate, classes) {
  return [
    `separable only with ties: under tie=${pythonText(certificate.ties ?? "")} every example is right, but some lie exactly on the boundary`,
    `witness: ${weightedRows(certificate, classes)} add up to exactly 0, so no w has a positive score on all of them`,
    "the margin is 0, so no bound on the mistakes follows, and a perceptron may never stop making them",
  ];
}

/** @param {Certificate} certificate @param {Label[]} classes */
function inseparableLines(certificate, classes) {
  const what = certificate.nClasses === 2 ? "Σλyx̃" : "Σλa over pairs of an example and a rival class";
  return [
    `witness: ${weightedRows(certificate, classes)}: ${what} is exactly 0`,
    "a w that gets all of these right would give that sum a positive score, but the score of 0 is 0: no such w exists",
  ];
}

/** @param {Certificate} certificate */
function separationLine({ separation, direction, d, nClasses, bias }) {
  if (separation === null) return "complete, quasi-complete or overlap: not decided within the time limit";
  if (separation === "overlap") return "overlap: a logistic regression has finite coefficients, as far as the data determine them";
  const w = direction ?? [];
  const m = d + (bias ? 1 : 0);
  const moves = (/** @type {number} */ j) => (nClasses === 2 ? w[j] !== 0 : Array.from({ length: nClasses }, (_, k) => w[k * m + j]).some((value) => value !== w[j]));
  const names = Array.from({ length: m }, (_, j) => (j === d ? "intercept" : String(j))).filter((_, j) => moves(j));
  const more = names.length > SHOWN ? `, … ${names.length} in all` : "";
  return `${separation} separation: a logistic regression has no finite best coefficients; these diverge: ${names.slice(0, SHOWN).join(", ")}${more}`;
}

/**
 * A certificate as the page shows it.
 * @param {Certificate} certificate
 * @param {Label[]} classes
 * @returns {CertificatePart}
 */
export function certificatePart(certificate, classes) {
  const { verdict, ties, separation, margin, mistakeBound, radius, witness } = certificate;
  const short = witness.map(({ row, rival, weight }) => {
    const exact = toText(weight);
    return { row, rival, weight: exact.length <= 9 ? exact : `≈${general(toNumber(weight), 3)}` };
  });
  return { verdict, ties, separation, margin, mistake_bound: mistakeBound === null ? null : Number(mistakeBound), radius, witness: short, lines: certificateLines(certificate, classes) };
}
