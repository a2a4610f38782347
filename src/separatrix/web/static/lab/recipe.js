// The recipe (the settings of the controls) as the fragment of the address, and back.

/** @import { Point, Recipe } from "./engine/types.js" */

const MOST_IN_A_LINK = 6000;

/**
 * The recipe of a fragment, not yet checked; settings that are missing have their defaults.
 * @param {Record<string, string>} entries
 * @param {Recipe} defaults
 */
export function fromAddress(entries, defaults) {
  /** @type {Recipe & Record<string, any>} */
  const recipe = { ...defaults, points: [], columns: [] };
  const byName = /** @type {Record<string, any>} */ (defaults);
  for (const [key, value] of Object.entries(entries)) {
    if (key === "points") recipe.points = value.split(";").filter(Boolean).map(point);
    else if (key === "columns") recipe.columns = value.split(",").filter(Boolean).map(numberOf);
    else if (key === "tie") recipe.tie = value.replace(" ", "+");
    else recipe[key] = asTyped(value, byName[key]);
  }
  return recipe;
}

/**
 * A value as a number or a truth value where its default is one; what is neither stays text, and is refused later.
 * @param {string} value
 * @param {any} fallback the default; that of the bias is null
 */
function asTyped(value, fallback) {
  if (fallback === null) return value === "1" ? true : value === "0" ? false : value;
  return typeof fallback === "number" && value.trim() !== "" && Number.isFinite(Number(value)) ? Number(value) : value;
}

/** @param {string | undefined} text @returns {number} NaN, which is refused later, where there is none */
function numberOf(text) {
  return text?.trim() ? Number(text) : NaN;
}

/** @param {string} text @returns {Point} */
function point(text) {
  const [first, second, ...rest] = text.split(",");
  const [x, y] = [numberOf(first), numberOf(second)];
  const label = rest.join(",");
  try {
    return [x, y, decodeURIComponent(label)];
  } catch {
    return [x, y, label]; // written by hand, with a % that is none of ours
  }
}

/** The settings that differ from the defaults; null if the data are too large for an address. @param {Recipe} recipe @param {Recipe} defaults */
export function toAddress(recipe, defaults) {
  /** @type {Record<string, string>} */
  const out = { data: recipe.data };
  const byName = /** @type {Record<string, any>} */ (defaults);
  const only = { random: ["n", "classes", "gap", "noise"], csv: ["csv", "file"], points: ["points"] };
  const foreign = Object.entries(only).flatMap(([data, keys]) => (data === recipe.data ? [] : keys));
  for (const [key, value] of Object.entries(recipe)) {
    if (foreign.includes(key) || JSON.stringify(value) === JSON.stringify(byName[key])) continue;
    if (key === "points") out.points = recipe.points.map(([x, y, name]) => [x, y, encodeURIComponent(name)].join(",")).join(";");
    else if (key === "columns") out.columns = recipe.columns.join(",");
    else if (key === "bias") out.bias = value ? "1" : "0";
    else out[key] = String(value);
  }
  return Object.values(out).join("").length > MOST_IN_A_LINK ? null : out;
}
