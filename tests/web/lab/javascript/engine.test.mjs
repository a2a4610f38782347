// Units of the engine: generators, exact arithmetic, the alternative of Gordan, CSV, recipes.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { certified } from "../lab/engine/certificate.js";
import { readCsv } from "../lab/engine/csv.js";
import { randomSet } from "../lab/engine/data.js";
import { decide } from "../lab/engine/decide.js";
import { mainDirections, principal } from "../lab/engine/directions.js";
import { documentOf } from "../lab/engine/document.js";
import { exactNearest } from "../lab/engine/exactpoint.js";
import { Generator } from "../lab/engine/generator.js";
import { nearestOf } from "../lab/engine/nearest.js";
import { planeOf } from "../lab/engine/plane.js";
import { fraction, orthogonalBasis, product, root, solved, toNumber, toText, wholeVectors } from "../lab/engine/rationals.js";
import { checkedRecipe } from "../lab/engine/recipe.js";
import { Twister } from "../lab/engine/twister.js";
import { general, pythonText } from "../lab/engine/wording.js";

const lab = JSON.parse(readFileSync(new URL("../lab/lab.json", import.meta.url), "utf8"));
const soon = () => performance.now() + 5000;

test("the generator draws what NumPy draws", () => {
  // np.random.default_rng([5, 3]): permutation(11), random(), integers(1, 6, 5)
  const random = new Generator([5, 3]);
  assert.deepEqual(random.permutation(11), [9, 8, 7, 1, 3, 10, 0, 4, 2, 6, 5]);
  assert.equal(random.random(), 0.9181581478927233);
  assert.deepEqual(random.integers(1, 6, 5), [5, 5, 1, 1, 2]);
  assert.equal(new Generator([0]).random(), 0.6369616873214543);
});

test("the twister draws what RandomState draws", () => {
  const random = new Twister(7);
  assert.deepEqual(random.permuted([0, 1, 2, 3, 4, 5, 6, 7, 8]), [2, 7, 0, 8, 5, 3, 6, 1, 4]);
  assert.equal(random.random(), 0.5384958704104337);
  assert.equal(random.normal(), -0.7889230286257386);
});

test("floats become whole numbers without loss", () => {
  const { whole, shift } = wholeVectors([[0.1, -3], [5e-324, 0]]);
  assert.equal(toNumber(fraction(whole[0][0], 1n << BigInt(shift))), 0.1);
  assert.equal(whole[0][1], -3n << BigInt(shift));
  assert.equal(whole[1][0], 1n);
});

test("fractions, linear systems and roots are exact", () => {
  assert.equal(toText(fraction(6n, -4n)), "-3/2");
  assert.deepEqual(solved([[2n, 1n], [1n, 3n]], [5n, 10n]), [5n, 15n]); // (1, 3) times the determinant 5
  assert.equal(solved([[1n, 2n], [2n, 4n]], [1n, 1n]), null);
  const square = fraction(2n);
  assert.ok(root(square, -1) < root(square, 1) && root(square, 1) - root(square, -1) < 3e-16);
  assert.equal(root(fraction(9n, 4n), -1), 1.5);
  for (const value of [1e300, 1e-300, 5e-324]) {
    const [{ whole, shift }, side] = [wholeVectors([[value]]), value === 1e300 ? -1 : 1];
    assert.equal(root(fraction(whole[0][0] ** 2n, 1n << BigInt(2 * shift)), side), value, "the square is no float");
  }
  for (const normal of orthogonalBasis([[1n, 2n, 3n]], 3)) assert.equal(product(normal, [1n, 2n, 3n]), 0n);
  assert.equal(orthogonalBasis([[1n, 2n, 3n]], 3).length, 2);
});

test("Gordan's alternative: a direction, or weights that balance", () => {
  const separable = [[4n, 0n], [-1n, -1n], [0n, -1n], [-2n, -2n]];
  const answer = decide(separable, soon());
  assert.ok("direction" in answer && separable.every((vector) => product(vector, answer.direction) > 0n));
  const vectors = [[1n, 1n], [-1n, 1n], [0n, -3n]];
  const none = decide(vectors, soon());
  assert.ok("witness" in none);
  for (const j of [0, 1]) assert.equal(none.witness.reduce((sum, { at, p }) => sum + p * vectors[at][j], 0n), 0n);
});

test("a margin far below the rounding error of float64 is found exactly", () => {
  const tiny = 2 ** -60;
  const { verdict, mistakeBound } = certified([[1, tiny], [1, -tiny]], [1, 0], 2, false, soon());
  assert.equal(verdict, "separable");
  assert.equal(mistakeBound, 2n ** 120n + 1n);
});

test("the nearest point of a hull", () => {
  const { x } = nearestOf([[2, 1], [2, -1], [5, 0]]);
  assert.deepEqual(x.map((value) => Math.round(value * 1e12) / 1e12), [2, 0]);
});

test("principal directions", () => {
  const [first, second] = principal([[2, 1], [1, 2]]);
  assert.ok(Math.abs(first.value - 3) < 1e-12 && Math.abs(second.value - 1) < 1e-12);
  assert.ok(Math.abs(Math.abs(first.vector[0]) - Math.SQRT1_2) < 1e-12);
});

test("principal directions of wide rows are those of narrow ones, in little time", () => {
  const random = new Generator([1]);
  const draw = (n, d) => Array.from({ length: n }, () => Array.from({ length: d }, (_, j) => (random.random() - 0.5) * (j === 7 ? 40 : j === 3 ? 10 : 1)));
  const began = performance.now();
  for (const [n, d] of [[30, 300], [200, 300], [60, 1000]]) {
    const [first, second] = mainDirections(draw(n, d));
    assert.ok(Math.abs(first.vector[7]) > 0.9 && Math.abs(second.vector[3]) > 0.7, `${n} × ${d}`);
    assert.ok(Math.abs(Math.hypot(...first.vector) - 1) < 1e-12);
  }
  const names = Array.from({ length: 300 }, (_, j) => `x${j}`);
  for (const X of [[names.map(() => 1), names.map(() => 2)], [names.map(() => 1), names.map(() => 1)], draw(100, 300)]) {
    for (const last of [null, [names.map((_, j) => Number(j < 2))], [names.map(() => 1)]]) {
      const [a, b] = planeOf(X, names, false, last).across;
      const inner = a.reduce((sum, value, j) => sum + value * b[j], 0);
      assert.ok(Math.abs(inner) < 1e-9 && Math.abs(Math.hypot(...a) - 1) < 1e-9 && Math.abs(Math.hypot(...b) - 1) < 1e-9);
    }
  }
  assert.ok(performance.now() - began < 10_000); // with a full decomposition it is minutes
});

test("CSV: titles, delimiters, quotes, missing labels, and what is wrong where", () => {
  assert.deepEqual(readCsv("a,b,k\n1,2,x\n3,4,y\n", "f").features, ["a", "b"]);
  assert.deepEqual(readCsv("1;2;0\n3;4;1\n", "f").labels, [0, 1]);
  assert.deepEqual(readCsv('a b k\n1 2 "x"\n3 4 y\n', "f").X, [[1, 2], [3, 4]]);
  assert.deepEqual(readCsv('a,b,k\n1,2,"x, ""y"""\n3,4,\n', "f").labels, ['x, "y"']);
  assert.throws(() => readCsv("a,b,k\n1,x,u\n2,3,v\n", "pasted.csv"), { message: "pasted.csv, line 2, column 2 (b): 'x' is not a finite number" });
  assert.throws(() => readCsv("1,2,a\n3,b\n", "f"), { message: "f, line 2: 2 columns where line 1 has 3" });
  assert.throws(() => readCsv("", "f"), { message: "f: the file is empty" });
  assert.throws(() => readCsv("PK\u0003\u0004", "f"), { message: "f is not text: the lab reads CSV files" });
});

test("a recipe from outside is checked", () => {
  assert.equal(checkedRecipe({ data: "iris" }, lab).learner, "perceptron");
  assert.throws(() => checkedRecipe({ n: 1e9 }, lab), { message: "n must be a whole number from 2 to 20000, not 1000000000" });
  assert.throws(() => checkedRecipe({ C: 0 }, lab), { message: "C must be a number above 0, at most 1000000, not 0" });
  assert.throws(() => checkedRecipe({ learner: "forest" }, lab), /learner is "forest", which is not one of perceptron/);
  assert.throws(() => checkedRecipe({ nothing: 1 }, lab), { message: 'there is no setting called "nothing"' });
  assert.throws(() => checkedRecipe({ points: [[1, 2]] }, lab), /points must be/);
  assert.throws(() => checkedRecipe({ "": "1" }, lab), { message: 'there is no setting called ""' });
  for (const key of ["learner", "rule", "order", "map", "kernel", "tie"]) {
    const value = lab.defaults[key] ?? "mistake";
    assert.throws(() => checkedRecipe({ [key]: [value] }, lab), new RegExp(`${key} is "${value}", which is not one of`), "a list of a name is no name");
  }
});

test("random points with too wide a margin are refused", () => {
  assert.throws(() => randomSet(50, 6, 4.9, 0, 0), { message: "a margin of 4.9 leaves no room for 50 points: choose a smaller margin" });
});

test("numbers and labels as Python writes them", () => {
  assert.deepEqual([0, 1.5, 1e-5, 123456789.4, 1e9, 0.000123].map((value) => general(value, 9)), ["0", "1.5", "1e-05", "123456789", "1e+09", "0.000123"]);
  assert.deepEqual(["a", "it's", 3].map(pythonText), ["'a'", '"it\'s"', "3"]);
});

test("the nearest point of a hull is exact from any start, and at a corner, on an edge and inside", () => {
  const far = 10n ** 30n;
  const cases = [
    [[[1n, far], [1n, -far], [5n, 1n]], [1n, 0n]],
    [[[3n, 1n], [2n, 1n], [4n, 7n]], [2n, 1n]],
    [[[1n, 0n], [-1n, 1n], [-1n, -1n]], [0n, 0n]],
    [[[0n, 3n], [4n, 0n]], [36n, 48n]], // over 25
  ];
  for (const [vectors, nearest] of cases) {
    const lowest = (x) => vectors.reduce((best, v, i) => (product(v, x) < product(vectors[best], x) ? i : best), 0);
    for (let start = 0; start < vectors.length; start += 1) {
      const { sum, total } = exactNearest([start], (i) => vectors[i], lowest, Infinity);
      const scale = nearest[1] === 48n ? 25n : 1n;
      assert.deepEqual(sum.map((value) => value * scale), nearest.map((value) => value * total));
    }
  }
});

test("votes on held-out examples take time in proportion to the corrections", async () => {
  const readSet = async (name) => JSON.parse(readFileSync(new URL(`../lab/${name}.json`, import.meta.url), "utf8"));
  const doc = await documentOf({ ...lab.defaults, data: "wine", learner: "voted", rule: "pa1", passes: 100, holdout: 0.3 }, { lab, readSet });
  assert.equal(doc.held_out.length, 100, "it took more than the 20 seconds after which a training ends");
});

test("a matrix that was lost to rounding is told", async () => {
  const points = [[1e12, 1e-8, "1"], [1e10, 1e4, "-1"], [-1e10, 0, "1"], [1e4, 1e7, "-1"], [-1e6, 1e12, "1"], [0, 1000, "-1"]];
  const run = documentOf({ ...lab.defaults, data: "points", points, learner: "perceptron", rule: "arow-full", passes: 5, bias: false }, { lab });
  await assert.rejects(run, { message: "the rule 'arow-full' has lost its matrix to rounding: the features span too many powers of ten; scale them, or use the rule 'arow'" });
});

test("points of any size end in a document or in one sentence", async () => {
  const run = (points, more = {}) => documentOf({ ...lab.defaults, data: "points", points, ...more }, { lab });
  for (const bias of [true, false]) {
    const { certificate } = await run([[1e-300, 1e-300, "a"], [-1e-300, 2e-300, "b"]], { bias, passes: 3 });
    assert.ok(certificate.verdict === "separable" && certificate.margin[0] > 8e-301 && certificate.margin[1] < 1.2e-300);
    const far = await run([[1e153, 1, "a"], [-1e153, 2, "b"]], { bias });
    assert.ok(far.converged && far.certificate.margin[0] > 9.9e152);
    await assert.rejects(run([[0, 0, "a"], [1e200, 1, "b"]], { bias }), { message: "row 1 of X is too large to score: its squared norm is above the largest float64" });
  }
});
