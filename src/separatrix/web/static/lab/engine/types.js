// The shapes of what the modules hand to each other; there is no code here.

/**
 * @typedef {number[]} Vector
 * @typedef {number | string} Label
 * @typedef {[number, number, string]} Point a drawn point: x₁, x₂ and its label
 */

/**
 * The settings of the controls, one for each, as `web/lab/recipe.py` declares them.
 * @typedef {{
 *   data: string, points: Point[], csv: string, file: string, positive: string, columns: number[],
 *   n: number, classes: number, gap: number, noise: number,
 *   learner: string, rule: string, C: number, margin: number, tie: string | null, order: string, bias: boolean | null,
 *   passes: number, seed: number, holdout: number, map: string, components: number, kernel: string, degree: number, gamma: number,
 * }} Recipe
 */

/**
 * Labelled examples with what their source says of a bias and of ties.
 * @typedef {{ name: string, X: Vector[], labels: Label[], features: string[] | null, bias: boolean, tie: string }} Examples
 */

/**
 * A learner's settings, resolved: no null, no name that the learner does not have.
 * @typedef {{
 *   learner: string, rule: string, asks: string, spread: string, C: number, margin: number, tie: string, bias: boolean,
 *   order: string, passes: number, seed: number, kernel: Kernel | null,
 * }} Settings
 * @typedef {{ kind: string, gamma: number, coef0: number, degree: number }} Kernel
 * @typedef {{ kind: string, names: string[], powers?: number[][], directions?: number[][], phases?: number[] }} FeatureMap
 */

/**
 * The mistakes of a run, a column for each property, as the ledger has them; `by` is null where every correction is 1.
 * @typedef {{ step: number[], up: number[], down: number[], by: number[] | null }} Mistakes
 */

/**
 * @typedef {{ row: number, rival: number, weight: string }} WitnessEntry
 * @typedef {{
 *   verdict: string, ties: string | null, separation: string | null, margin: [number, number] | null,
 *   mistake_bound: number | null, radius: number, witness: WitnessEntry[], lines: string[],
 * }} CertificatePart
 * @typedef {{ u: Vector, gamma: number }} Separator
 * @typedef {{ w: Vector, support: number[], margin: number }} WidestMargin
 * @typedef {{ theorem: string, quantity: string, made: number, possible: number }} Bound
 * @typedef {{ kind: string, origin: Vector, across: Vector[], axes: string[], note: string }} Plane
 */

/**
 * Everything that the page shows of a run, as `web/lab/document.py` writes it too. `w` has the weights after each mistake, all outputs in a row;
 * it is null with a kernel. `separator` and the fields after it are null or empty where they do not apply.
 * @typedef {{
 *   format?: string, name: string, recipe: { data?: string, bias: boolean, tie: string }, source: { features: string[], classes: string[] }, snippet: string,
 *   features: string[], classes: Label[], n_train: number, x: Vector[], y: number[], map: FeatureMap, bias: boolean, learner: string, predicts: string,
 *   rule: { name: string, margin: number, C: number, asks: string, spread: string }, tie: string, order: string,
 *   steps: number[], pass_starts: number[], complete: boolean, n_steps: number, mistakes: Mistakes, w: ArrayLike<number>[] | null, kernel: Kernel | null,
 *   kept: number | null, n_mistakes: number, mistakes_per_pass: number[], converged: boolean, cycle: number[] | null, held_out: number[] | null,
 *   plane: Plane, R2: number | null, separator: Separator | null, proof: boolean, bounds: Bound[], why_no_bound: string,
 *   certificate: CertificatePart | null, max_margin: WidestMargin | null,
 * }} RunDocument
 */

/**
 * The menus, texts and defaults that Python writes into lab.json.
 * @typedef {{
 *   format: string, defaults: Recipe,
 *   lectures: { name: string, title: string, points: Vector[], labels: Label[], tie: string, bias: boolean }[],
 *   sets: string[],
 *   learners: Record<string, { title: string, rules: string[], orders: string[], name: string, predicts: string, parameters: Record<string, any> }>,
 *   rules: Record<string, { title: string, sentence: string, asks: string, has_C: boolean, spread: string, theorem: string }>,
 *   orders: Record<string, string>, two_class_ties: Record<string, string>, multi_class_ties: Record<string, string>,
 *   maps: Record<string, string>, kernels: Record<string, string>, limits: Record<string, number>,
 *   ranges: Record<string, { least?: number, above?: number, most: number, whole: boolean }>,
 * }} Lab
 */

export {};
