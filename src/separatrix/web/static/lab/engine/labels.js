// Labels and classes: the sorted classes, and the place of each label among them.

/** @import { Label } from "./types.js" */

/** @param {string} a @param {string} b by code points, as Python sorts */
function byCodePoint(a, b) {
  const [x, y] = [Array.from(a), Array.from(b)];
  for (let i = 0; i < Math.min(x.length, y.length); i += 1) {
    const order = /** @type {number} */ (x[i].codePointAt(0)) - /** @type {number} */ (y[i].codePointAt(0));
    if (order) return order;
  }
  return x.length - y.length;
}

/**
 * The distinct labels in order: numbers by value, texts by their characters.
 * @param {readonly Label[]} labels
 * @returns {Label[]}
 */
export function classesOf(labels) {
  return [...new Set(labels)].sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : byCodePoint(String(a), String(b))));
}

/**
 * @param {readonly Label[]} classes
 * @param {readonly Label[]} labels
 */
export function encoded(classes, labels) {
  const place = new Map(classes.map((label, c) => [label, c]));
  return labels.map((label) => /** @type {number} */ (place.get(label)));
}

/**
 * Texts as whole numbers if all of them are written as such, else as they are.
 * @param {readonly string[]} texts
 * @param {RegExp} whole how a whole number may be written
 * @returns {Label[]}
 */
export function asLabels(texts, whole = /^(0|-?[1-9]\d*)$/) {
  const areWhole = texts.every((text) => whole.test(text) && Number.isSafeInteger(Number(text)));
  return areWhole ? texts.map((text) => Number(text) + 0) : [...texts]; // −0 + 0 is 0
}
