// What the controls say: defaults, the fragment of the address, and back.

export const DEFAULTS = {
  data: "lecture:L4.1", points: [], csv: "", file: "pasted.csv", positive: "", columns: [], n: 60, classes: 2, gap: 0.5, noise: 0,
  learner: "perceptron", rule: "perceptron", C: 1, margin: 1, tie: null, order: "cyclic", bias: null, passes: 0, seed: 0, holdout: 0,
  map: "none", components: 50, kernel: "rbf", degree: 2, gamma: 1,
};
const MOST_IN_A_LINK = 6000;

// A recipe from the fragment; what is not there, or makes no sense, is as by default.
export function fromAddress(given) {
  const recipe = { ...DEFAULTS, points: [], columns: [] };
  for (const [key, value] of Object.entries(given)) {
    if (key === "points") recipe.points = value.split(";").filter(Boolean).map(point);
    else if (key === "columns") recipe.columns = value.split(",").filter(Boolean).map(Number);
    else if (key === "bias") recipe.bias = value === "1";
    else if (key === "tie") recipe.tie = value.replace(" ", "+");
    else if (key in DEFAULTS) recipe[key] = typeof DEFAULTS[key] === "number" ? Number(value) : value;
  }
  return recipe;
}

function point(text) {
  const [x, y, ...rest] = text.split(",");
  return [Number(x), Number(y), decodeURIComponent(rest.join(","))];
}

// What is not as by default, for the address; null for data that are too large for one.
export function toAddress(recipe) {
  const out = { data: recipe.data };
  const only = { random: ["n", "classes", "gap", "noise"], csv: ["csv", "file"], points: ["points"] };
  const foreign = Object.entries(only).flatMap(([data, keys]) => (data === recipe.data ? [] : keys));
  for (const [key, value] of Object.entries(recipe)) {
    if (foreign.includes(key) || JSON.stringify(value) === JSON.stringify(DEFAULTS[key])) continue;
    if (key === "points") out.points = value.map(([x, y, name]) => [x, y, encodeURIComponent(name)].join(",")).join(";");
    else if (key === "columns") out.columns = value.join(",");
    else if (key === "bias") out.bias = value ? "1" : "0";
    else out[key] = String(value);
  }
  return Object.values(out).join("").length > MOST_IN_A_LINK ? null : out;
}
