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
  if (unknown) throw new RecipeError(`there is no setting called "${unknown}"`);
  for (const [key, { least, above, most, whole }] of Object.entries(lab.ranges)) {
    const value = /** @type {any} */ (recipe)[key];
    const low = least ?? above ?? -Infinity;
    const fits = typeof value === "number" && value >= low && value <= most && (above === undefined || value > above) && (!whole || Number.isInteger(value));
    if (!fits) throw new RecipeError(`${key} must be a ${whole ? "whole " : ""}number ${above === undefined ? `from ${low}` : `above ${low}, at most`} ${above === undefined ? `to ${most}` : most}, not ${String(value)}`);
  }
  const choices = { learner: lab.learners, rule: lab.rules, order: lab.orders, map: lab.maps, kernel: lab.kernels };
  for (const [key, table] of Object.entries(choices)) {
    const value = /** @type {any} */ (recipe)[key];
    if (!Object.hasOwn(table, value)) throw new RecipeError(`${key} is "${String(value)}", which is not one of ${Object.keys(table).join(", ")}`);
  }
  const ties = { ...lab.two_class_ties, ...lab.multi_class_ties };
  if (recipe.tie !== null && !Object.hasOwn(ties, recipe.tie)) throw new RecipeError(`tie is "${recipe.tie}", which is not one of ${Object.keys(ties).join(", ")}`);
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

/** @param {string} data @param {Lab} lab */
export function checkData(data, lab) {
  const known = ["points", "random", "csv", ...lab.sets, ...lab.lectures.map(({ name }) => `lecture:${name}`)];
  if (!known.includes(data)) throw new RecipeError(`there is no data set called '${data}'`);
}

/** @param {unknown} point */
function isPoint(point) {
  return Array.isArray(point) && point.length === 3 && Number.isFinite(point[0]) && Number.isFinite(point[1]) && typeof point[2] === "string" && point[2] !== "";
}
