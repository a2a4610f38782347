// The Python program that does the same training as the page.

import { pythonText } from "./wording.js";

/** @import { Examples, Lab, Recipe, Settings } from "./types.js" */

const MOST_LITERAL = 300; // at most so many examples are written out in the program
const WIDTH = 80;

/** @param {number} value as Python writes a float */
function float(value) {
  if (Object.is(value, -0)) return "-0.0";
  const [mantissa, power] = value.toExponential().split("e"); // with all digits that tell the value from its neighbours
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) return `${mantissa}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  return Number.isInteger(value) ? `${value}.0` : String(value);
}

/** @param {unknown} value @param {string} name */
function literal(value, name) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return ["C", "margin", "gamma", "coef0"].includes(name) ? float(value) : String(value);
  return pythonText(String(value));
}

/**
 * The call of a constructor with the parameters that are not the defaults, by name, in lines of 80 columns.
 * @param {string} name
 * @param {Record<string, any>} parameters
 * @param {Record<string, any>} defaults
 */
function constructorCall(name, parameters, defaults) {
  const changed = Object.keys(parameters).sort().filter((key) => literal(parameters[key], key) !== literal(defaults[key] ?? null, key));
  const words = changed.map((key, k) => `${key}=${literal(parameters[key], key)}${k + 1 < changed.length ? "," : ")"}`);
  const indent = " ".repeat(name.length + 1);
  const lines = [`${name}(${words.length ? "" : ")"}`];
  words.forEach((word, k) => {
    const line = lines[lines.length - 1];
    if (k > 0 && line.length + 1 + word.length > WIDTH) lines.push(indent + word);
    else lines[lines.length - 1] = line + (k > 0 ? " " : "") + word;
  });
  return lines.join("\n");
}

/**
 * The parameters of the learner's class.
 * @param {Recipe} recipe
 * @param {Settings} settings
 */
function parametersOf(recipe, settings) {
  const common = { tie: settings.tie, fit_intercept: settings.bias, max_iter: recipe.passes || null, random_state: recipe.seed };
  if (recipe.learner === "passive-aggressive") {
    return { ...common, C: recipe.C, loss: recipe.rule === "pa2" ? "squared_hinge" : "hinge", shuffle: recipe.order !== "cyclic", tol: null };
  }
  if (recipe.learner === "kernel") {
    return { ...common, order: recipe.order, kernel: recipe.kernel, degree: recipe.degree, gamma: recipe.gamma, coef0: 1, predict_with: "last" };
  }
  return { ...common, order: recipe.order, rule: recipe.rule, C: recipe.C, margin: recipe.margin };
}

/** @param {Recipe} recipe @param {Examples} examples @returns {string[]} the lines that make X and y */
function dataCode(recipe, examples) {
  if (recipe.data === "random") {
    const { n, classes, gap, noise, seed } = recipe;
    return ["from separatrix.web.lab.points import random_set", `X, y = random_set(n=${n}, classes=${classes}, gap=${float(gap)}, noise=${float(noise)}, seed=${seed})`];
  }
  if (recipe.data === "points" || (recipe.data === "csv" && examples.labels.length <= MOST_LITERAL)) {
    const rows = examples.X.map((x) => `[${x.map(float).join(", ")}]`).join(", ");
    return ["import numpy as np", `X = np.array([${rows}], dtype=float)`, `y = np.array([${examples.labels.map(pythonText).join(", ")}])`];
  }
  const source = pythonText(recipe.data === "csv" ? recipe.file : recipe.data);
  const positive = recipe.positive ? `, positive=${pythonText(recipe.positive)}` : "";
  return ["from separatrix.data.in_memory import read_source", `source = read_source(${source}${positive})`, "X, y = source.X, source.y"];
}

/** @param {Recipe} recipe @returns {[string, string] | null} the class of the feature map, and the call that makes it */
function mapCode(recipe) {
  if (recipe.learner === "kernel" || recipe.map === "none") return null;
  if (recipe.map === "disc") return ["DiscMap", "DiscMap()"];
  if (recipe.map === "fourier") {
    const { gamma, components, seed } = recipe;
    return ["RandomFourier", constructorCall("RandomFourier", { gamma, n_components: components, random_state: seed }, { gamma: 1, n_components: 100, random_state: null })];
  }
  return ["PolynomialMap", constructorCall("PolynomialMap", { degree: Number(recipe.map.slice(-1)), include_bias: false }, { degree: 2, include_bias: true })];
}

/** @param {string} line @returns {string} the sort key of an import: whole modules first, our own last */
function importRank(line) {
  return `${Number(line.includes("separatrix"))}${Number(line.startsWith("from "))}${line}`;
}

/**
 * @param {Recipe} recipe
 * @param {Settings} settings
 * @param {Examples} examples
 * @param {Lab} lab
 */
export function programOf(recipe, settings, examples, lab) {
  const { name, parameters: defaults } = lab.learners[recipe.learner];
  const kernel = recipe.learner === "kernel";
  const names = [name, ...(kernel ? [] : ["certify", "trace"])].sort((a, b) => (a < b ? -1 : 1));
  const lines = [`from separatrix import ${names.join(", ")}`, ...dataCode(recipe, examples)];
  if (recipe.columns.length) lines.push(`X = X[:, [${recipe.columns.join(", ")}]]`);
  const map = mapCode(recipe);
  if (map) lines.push(`from separatrix.features import ${map[0]}`, `X = ${map[1]}.fit_transform(X)`);
  if (recipe.holdout) {
    lines.push("from sklearn.model_selection import train_test_split",
      `parts = train_test_split(X, y, test_size=${float(recipe.holdout)}, random_state=${recipe.seed}, stratify=y)`, "X, X_val, y, y_val = parts");
  }
  lines.push(`model = ${constructorCall(name, parametersOf(recipe, settings), defaults)}`, `model.fit(X, y${recipe.holdout ? ", X_val=X_val, y_val=y_val" : ""})`,
    'print("mistakes", model.n_mistakes_, "in passes", model.mistakes_per_pass_, "clean:", model.converged_)');
  if (recipe.holdout) lines.push('print("held-out accuracy", model.validation_scores_)');
  if (kernel) lines.push("for mistake in model.ledger_:", "    print(mistake.step, mistake.example, mistake.up)");
  else {
    lines.push('print("predicts with", model.coef_.tolist(), model.intercept_.tolist())', "for row in trace(model, X, y).mistakes:",
      '    print(row["k"], row["step"], row["example"], row["w"], row["norm2"])', `print(certify(X, y, fit_intercept=${literal(settings.bias, "")}))`);
  }
  const isImport = (/** @type {string} */ line) => /^(import|from) /.test(line);
  const imports = [...new Set(lines.filter(isImport))].sort((a, b) => (importRank(a) < importRank(b) ? -1 : 1));
  return [...imports, "", ...lines.filter((line) => !isImport(line))].join("\n") + "\n";
}
