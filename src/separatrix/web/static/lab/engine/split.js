// Held-out examples: the split of scikit-learn's `train_test_split(..., stratify=y)`, draw for draw.

import { RecipeError } from "./errors.js";
import { largest } from "./extremes.js";
import { Twister } from "./twister.js";

/**
 * How many of each class are drawn, in proportion to the classes; what is left over by rounding is dealt at random.
 * @param {number[]} counts
 * @param {number} draws
 * @param {Twister} random
 */
function approximateMode(counts, draws, random) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  const continuous = counts.map((count) => (count / total) * draws);
  const floored = continuous.map(Math.floor);
  let missing = draws - floored.reduce((sum, count) => sum + count, 0);
  const remainders = continuous.map((value, k) => value - floored[k]);
  for (const value of [...new Set(remainders)].sort((a, b) => b - a)) {
    if (missing <= 0) break;
    const tied = remainders.flatMap((remainder, k) => (remainder === value ? [k] : []));
    const more = Math.min(tied.length, missing);
    for (const k of random.permuted(tied).slice(0, more)) floored[k] += 1;
    missing -= more;
  }
  return floored;
}

/**
 * The numbers of the examples to train on and of those held out.
 * @param {number[]} codes
 * @param {number} share
 * @param {number} seed
 */
export function stratifiedSplit(codes, share, seed) {
  const n = codes.length;
  const nClasses = largest(codes) + 1;
  const members = Array.from({ length: nClasses }, (_, k) => codes.flatMap((code, i) => (code === k ? [i] : [])));
  const counts = members.map((each) => each.length);
  const nTest = Math.ceil(share * n);
  const nTrain = n - nTest;
  if (Math.min(...counts) < 2 || nTrain < nClasses || nTest < nClasses) {
    throw new RecipeError(`holding out ${Math.round(share * 100)}% leaves a class without examples: hold out less`);
  }
  const random = new Twister(seed);
  const inTrain = approximateMode(counts, nTrain, random);
  const inTest = approximateMode(counts.map((count, k) => count - inTrain[k]), nTest, random);
  /** @type {number[]} */
  const train = [];
  /** @type {number[]} */
  const test = [];
  members.forEach((each, k) => {
    const shuffled = random.permuted(each.map((_, i) => i)).map((i) => each[i]);
    train.push(...shuffled.slice(0, inTrain[k]));
    test.push(...shuffled.slice(inTrain[k], inTrain[k] + inTest[k]));
  });
  return { train: random.permuted(train), test: random.permuted(test) };
}
