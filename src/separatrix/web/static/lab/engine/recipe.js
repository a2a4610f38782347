// A recipe from outside (a link, a lecture) checked against the tables that Python wrote.

import { RecipeError } from "./errors.js";

/** @import { Lab, Recipe } from "./types.js" */

/**
 * The recipe with a default for each setting that is missing; raises RecipeError for what the lab does not have.
 * @param {Record<string, any>} given
 * @param {Lab} lab
 * @returns {Recipe}
 */
export function checkedRecipe(given, lab) {
  const recipe = { ...lab.defaults, ...given };
  const unknown = Object.keys(recipe).find((key) => !Object.hasOwn(lab.defaults, key));
  if (unknown !== undefined) throw new RecipeError(`there is no setting called "${unknown}"`);
  for (const key of Object.keys(lab.ranges)) {
    const value = /** @type {any} */ (recipe)[key];
    const problem = outOfRange(key, value, lab);
    if (problem) throw new RecipeError(`${key} ${problem}, not ${String(value)}`);
  }
  const choices = { learner: lab.learners, rule: lab.rules, order: lab.orders, map: lab.maps, kernel: lab.kernels };
  for (const [key, table] of Object.entries(choices)) {
    const value = /** @type {any} */ (recipe)[key];
    if (typeof value !== "string" || !Object.hasOwn(table, value)) throw new RecipeError(`${key} is "${String(value)}", which is not one of ${Object.keys(table).join(", ")}`);
  }
  const ties = { ...lab.two_class_ties, ...lab.multi_class_ties };
  if (recipe.tie !== null && (typeof recipe.tie !== "string" || !Object.hasOwn(ties, recipe.tie))) throw new RecipeError(`tie is "${recipe.tie}", which is not one of ${Object.keys(ties).join(", ")}`);
  if (recipe.bias !== null && typeof recipe.bias !== "boolean") throw new RecipeError("bias must be true or false (1 or 0 in an address)");
  for (const key of /** @type {("data" | "csv" | "file" | "positive")[]} */ (["data", "csv", "file", "positive"])) {
    if (typeof recipe[key] !== "string") throw new RecipeError(`${key} must be text`);
  }
  checkData(recipe.data, lab);
  if (!Array.isArray(recipe.points) || recipe.points.length > lab.limits.points || !recipe.points.every(isPoint)) throw new RecipeError(`points must be at most ${lab.limits.points} triples of two numbers and a label`);
  const columns = recipe.columns;
  if (!Array.isArray(columns) || columns.length > 2 || !columns.every((j) => Number.isInteger(j) && j >= 0)) throw new RecipeError("columns must be at most two numbers of features");
  return recipe;
}

/**
 * What the number of a setting must be, as the end of a sentence; "" if it is that.
 * @param {string} key
 * @param {unknown} value
 * @param {Lab} lab
 */
export function outOfRange(key, value, lab) {
  const { least, above, most, whole } = lab.ranges[key];
  const low = least ?? above ?? -Infinity;
  const fits = typeof value === "number" && value >= low && value <= most && (above === undefined || value > above) && (!whole || Number.isInteger(value));
  return fits ? "" : `must be a ${whole ? "whole " : ""}number ${above === undefined ? `from ${low} to ${most}` : `above ${low}, at most ${most}`}`;
}

/** @param {string} data @param {Lab} lab */
export function checkData(data, lab) {
  const known = ["points", "random", "csv", ...lab.sets, ...lab.lectures.map(({ name }) => `lecture:${name}`)];
  if (!known.includes(data)) throw new RecipeError(`there is no data set called '${data}'`);
}

/** @param {unknown} point */
function isPoint(point) {
  return Array.isArray(point) && point.length === 3 && Number.isFinite(point[0]) && Number.isFinite(point[1]) && typeof point[2] === "string" && point[2] !== "";
}
