// Numbers, vectors, sums and labels as text.

/** @import { Label } from "./engine/types.js" */

export const SHAPES = ["●", "■", "▲", "◆", "▼", "⬟", "★"]; // the markers of the classes

/** @param {number | null | undefined} value */
export function num(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 1e12) {
    const [digits, power] = value.toExponential(3).replace("-", "−").split("e+");
    return `${digits}·10${Array.from(power, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)]).join("")}`;
  }
  const whole = Number.isInteger(value) || Math.abs(value) >= 1e4;
  const text = whole ? value.toFixed(0) : String(Number(value.toPrecision(4)));
  return (text === "-0" ? "0" : text).replace("-", "−");
}

/** @param {ArrayLike<number>} values */
export function vec(values, most = 6) {
  const first = Array.from(values).slice(0, most).map(num);
  return "(" + first.join(", ") + (values.length > most ? ", …" : "") + ")";
}

/** @param {number} value */
function factor(value) {
  const text = num(value);
  return text.startsWith("−") ? `(${text})` : text;
}

/**
 * A sum of products: all terms if they are few, else the largest terms and the total of the rest.
 * @param {ArrayLike<number>} w
 * @param {ArrayLike<number>} x
 */
export function products(w, x, most = 5) {
  const terms = Array.from(w, (weight, j) => ({ weight, value: x[j], product: weight * x[j] }));
  if (terms.length <= most) return terms.map((t) => `${factor(t.weight)}·${factor(t.value)}`).join(" + ");
  const largest = [...terms].sort((a, b) => Math.abs(b.product) - Math.abs(a.product)).slice(0, most - 1);
  const rest = terms.reduce((sum, t) => sum + t.product, 0) - largest.reduce((sum, t) => sum + t.product, 0);
  const summands = largest.map((t) => `${factor(t.weight)}·${factor(t.value)}`);
  return [...summands, `${factor(rest)} of ${terms.length - largest.length} more`].join(" + ");
}

/** @param {number} n @param {string} singular */
export function count(n, singular, plural = singular + "s") {
  return `${n.toLocaleString("en")} ${n === 1 ? singular : plural}`;
}

/** The name of some data as a title. @param {string} name */
export function displayName(name) {
  return name.replace(/^lecture:/, "Lecture example ");
}

/** A label as text; the classes −1 and 1 are written −1 and +1. @param {Label[]} classes @param {number} code */
export function label(classes, code) {
  const name = classes[code];
  if (classes.length === 2 && classes[0] === -1 && classes[1] === 1) return code === 1 ? "+1" : "−1";
  return String(name).replace(/^-/, "−");
}

/** A cell of a CSV file. Text that a spreadsheet would take for a formula is escaped. @param {string | number | boolean | null | undefined} value */
export function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? "'" + value : value;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
