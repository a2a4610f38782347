// Units of the page that need no browser: links, lectures, quiz questions, the GIF encoder.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { documentOf } from "../lab/engine/document.js";
import { Fields } from "../lab/fields.js";
import { framesOf } from "../lab/film.js";
import { Frame, ticks } from "../lab/frame.js";
import { encodedGif } from "../lab/gif.js";
import { checkedRecipe } from "../lab/engine/recipe.js";
import { checkedLecture } from "../lab/lecture.js";
import { fromShortLink, isShortLink, toShortLink } from "../lab/links.js";
import { fromAddress } from "../lab/recipe.js";
import { Run } from "../lab/run.js";
import { viewState } from "../lab/state.js";

const read = (name) => JSON.parse(readFileSync(new URL(`../lab/${name}`, import.meta.url), "utf8"));
const lab = read("lab.json");

test("a link holds everything and is short", async () => {
  const points = Array.from({ length: 40 }, (_, i) => [(i * 37) % 11 / 2, (i * 53) % 13 / 2, i % 2 ? "1" : "-1"]);
  const settings = { data: "points", points, learner: "averaged", step: "end", views: "last,averaged" };
  const link = await toShortLink(settings);
  assert.ok(isShortLink(link) && link.startsWith("1."));
  assert.deepEqual(await fromShortLink(link), settings);
  assert.ok(link.length < 0.45 * encodeURIComponent(JSON.stringify(settings)).length, String(link.length));
});

test("a damaged link and one of a later version say so", async () => {
  await assert.rejects(fromShortLink("7.abc"), { message: "this link has the format 7, which this version of the lab does not know" });
  const link = await toShortLink({ data: "iris", learner: "voted" });
  await assert.rejects(fromShortLink(link.slice(0, -6)), { message: "this link is damaged: part of it is missing or was changed" });
  assert.ok(!isShortLink("data=lecture:L4.1"));
  for (const mark of [".", ")", ">,", "”"]) assert.deepEqual(await fromShortLink(link + mark), { data: "iris", learner: "voted" });
  const changed = `${link.slice(0, 8)}*${link.slice(9)}`;
  assert.ok(isShortLink(changed));
  await assert.rejects(fromShortLink(changed), /is damaged/);
  const long = await toShortLink({ data: "csv", csv: "1".repeat(5_000_000) });
  assert.ok(long.length < 10_000, "few letters can stand for much");
  await assert.rejects(fromShortLink(long), { message: "this link holds more than the lab reads from one: 4 MB of settings" });
  const csv = Array.from({ length: 60_000 }, (_, i) => `${(i * 7919) % 104729},${(i * 104729) % 7919},${i % 2}`).join("\n");
  assert.equal((await fromShortLink(await toShortLink({ data: "csv", csv }))).csv, csv);
});

test("a lecture is checked screen by screen", () => {
  const lecture = checkedLecture(read("example.lecture.json"), lab);
  assert.equal(lecture.screens.length, 6);
  assert.equal(lecture.screens[0].recipe.data, "lecture:L4.1");
  const format = "separatrix lecture 1";
  assert.throws(() => checkedLecture({}, lab), { message: 'this is not a lecture: "format" must be "separatrix lecture 1"' });
  assert.throws(() => checkedLecture({ format, screens: [] }, lab), /at least one screen/);
  const wrong = [
    [{ recipe: { nothing: 1 } }, 'there is no setting called "nothing"'],
    [{ recipe: { learner: "svm" } }, 'learner is "svm", which is not one of perceptron, averaged, voted, pocket, passive-aggressive, kernel'],
    [{ recipe: { learner: "constructor" } }, /^.*learner is "constructor"/],
    [{ recipe: "iris" }, '"recipe" must be an object with settings, as {"data": "iris"}'],
    [{ recipe: { passes: "5" } }, "passes must be a whole number from 0 to 1000, not 5"],
    [{ step: -1 }, '"step" must be a whole number or "end"'],
    [{ quiz: "yes" }, '"quiz" must be true or false'],
    [{ views: "last" }, '"views" must be a list of last, averaged, voted, pocket, margin'],
    [{ caption: 5 }, '"caption" must be text'],
    [{ text: "" }, /^.*screen 2 has the unknown field "text"/],
  ];
  for (const [screen, message] of wrong) {
    const expected = typeof message === "string" ? `this is not a lecture: screen 2: ${message}` : message;
    assert.throws(() => checkedLecture({ format, screens: [{}, screen] }, lab), { message: expected });
  }
});

test("a film shows every step of a short run, and the mistakes of a long one", () => {
  assert.deepEqual(framesOf({ steps: 3, mistakeSteps: [1] }), [0, 1, 2, 3]);
  assert.deepEqual(framesOf({ steps: 500, mistakeSteps: [3, 90] }), [0, 3, 90, 500]);
  const long = framesOf({ steps: 5000, mistakeSteps: Array.from({ length: 400 }, (_, k) => 5 + 7 * k) });
  assert.ok(long.length <= 60 && long[0] === 0 && long.at(-1) === 5000);
});

// A decoder of LZW that knows nothing of the encoder.
function decoded(bytes, count) {
  let [at, size, next, bit] = [0, 9, 258, 0];
  const out = [];
  let table = [];
  let last = null;
  const code = () => {
    let value = 0;
    for (let k = 0; k < size; k += 1, bit += 1) value |= ((bytes[bit >> 3] >> (bit & 7)) & 1) << k;
    return value;
  };
  const text = (c) => (c < 256 ? [c] : table[c]);
  for (; at < 1e7; at += 1) {
    const c = code();
    if (c === 257) break;
    if (c === 256) {
      [table, size, next, last] = [[], 9, 258, null];
      continue;
    }
    const entry = c < 256 || table[c] ? text(c) : [...last, last[0]];
    out.push(...entry);
    if (last && next < 4096) {
      table[next] = [...last, entry[0]];
      next += 1;
      if (next === 1 << size && size < 12) size += 1;
    }
    last = entry;
  }
  assert.equal(out.length, count);
  return out;
}

test("the GIF decodes to the pixels that went in, frame upon frame", () => {
  const [width, height] = [120, 90];
  const picture = (shift) => {
    const image = new Uint8ClampedArray(4 * width * height);
    for (let i = 0; i < width * height; i += 1) image.set([((i * 7) % 16) * 16, ((Math.floor(i / 11) + (i > 5000 ? shift : 0)) % 8) * 32, 0, 255], 4 * i);
    return image;
  };
  const images = [picture(0), picture(3), picture(3)];
  const bytes = encodedGif(images, width, height, [10, 20, 30]);
  assert.equal(String.fromCharCode(...bytes.subarray(0, 6)), "GIF89a");
  const palette = bytes.subarray(13, 13 + 768);
  const shown = new Uint8Array(width * height);
  const sizes = [];
  let at = 13 + 768 + 19;
  for (const [frame, image] of images.entries()) {
    assert.deepEqual([...bytes.subarray(at, at + 7)], [0x21, 0xf9, 4, 5, 10 + 10 * frame, 0, 255]);
    at += 8 + 10 + 1;
    const data = [];
    for (; bytes[at]; at += bytes[at] + 1) data.push(...bytes.subarray(at + 1, at + 1 + bytes[at]));
    at += 1;
    sizes.push(data.length);
    decoded(data, width * height).forEach((index, i) => {
      if (index !== 255) shown[i] = index;
    });
    assert.ok(shown.every((index, i) => [0, 1, 2].every((c) => palette[3 * index + c] === image[4 * i + c])));
  }
  assert.ok(sizes[1] < sizes[0] && sizes[2] < 0.1 * sizes[0], "a frame holds only what changed");
  assert.equal(bytes[at], 0x3b);
});

test("colours that occur often stay what they are in a GIF with more than 255 colours", () => {
  const image = new Uint8ClampedArray(4 * 4000).fill(255);
  for (let i = 0; i < 1000; i += 1) image.set([229, 241, 247], 4 * i);
  for (let i = 0; i < 2000; i += 1) image.set([228 + (i % 8), 240 + (Math.floor(i / 8) % 8), 16 * Math.floor(i / 64) % 256], 4 * (1000 + i));
  const palette = encodedGif([image], 80, 50, [10]).subarray(13, 13 + 768);
  const colours = Array.from({ length: 255 }, (_, k) => palette.subarray(3 * k, 3 * k + 3).join());
  assert.ok(colours.includes("229,241,247") && colours.includes("255,255,255"));
  image.set([31, 111, 84], 4 * 3999); // the ring of one frame
  const kept = encodedGif([image], 80, 50, [10], [0x1f6f54, 0x123456]).subarray(13, 13 + 3 * 255).join();
  assert.ok(kept.startsWith("31,111,84,") && !kept.includes("18,52,86"));
});

test("an address is read as written, and what is no setting is refused", () => {
  const read = (text) => checkedRecipe(fromAddress(Object.fromEntries(new URLSearchParams(text)), lab.defaults), lab);
  assert.deepEqual(read("points=1,2,50%25;3,4,b&data=points&bias=0&tie=+1&passes=3").points, [[1, 2, "50%"], [3, 4, "b"]]);
  assert.equal(read("bias=1&tie=%2B1").tie, "+1");
  assert.throws(() => read("learnr=voted"), { message: 'there is no setting called "learnr"' });
  assert.throws(() => read("bias=maybe"), { message: "bias must be true or false (1 or 0 in an address)" });
  assert.throws(() => read("passes=abc"), { message: "passes must be a whole number from 0 to 1000, not abc" });
  for (const points of [",1,a;2,3,b", "1, ,a;2,3,b", "1", "1,2,a;,"]) assert.throws(() => read(`data=points&points=${points}`), /triples of two numbers and a label/, "nothing is no 0");
  assert.throws(() => read("columns=1,%20"), { message: "columns must be at most two numbers of features" });
  assert.throws(() => read("=1"), { message: 'there is no setting called ""' });
  assert.throws(() => read("data=points&points=1,2;3,4,b"), /triples of two numbers and a label/);
  assert.throws(() => viewState({ step: "abc" }), { message: 'step must be a whole number or "end", not abc' });
});

test("a fixed part of the plane grows where a picture of another shape would leave a point out", async () => {
  const points = [[-11.8, -3.4, "2"], [-8.5, 3.1, "-1"], [4.4, -2.3, "1"]];
  const run = new Run(await documentOf({ ...lab.defaults, data: "points", points, passes: 1 }, { lab }));
  for (const [width, height] of [[785, 292], [640, 360], [390, 351], [300, 900]]) {
    const frame = new Frame(run, width, height, [-5, 5, -5, 5]);
    const { x, y, width: w, height: h } = frame.inner();
    const inside = frame.points.map((point) => frame.toPixels(point)).every(([px, py]) => px >= x && px <= x + w && py >= y && py <= y + h);
    assert.ok(inside && frame.window[0] <= -5 && frame.window[3] >= 5, `${width} × ${height}`);
  }
  assert.deepEqual(new Frame(run, 1258, 348, [-5, 5, -5, 5]).window, [-20, 20, -5, 5], "where all are inside already, it stays");
});

test("an axis has round ticks, and never only one", () => {
  assert.deepEqual(ticks(-5, 5, 5), [-4, -2, 0, 2, 4]);
  assert.deepEqual(ticks(-1.7, 1.6, 3), [-1, 0, 1]);
  assert.deepEqual(ticks(0.31, 0.34, 2), [0.32, 0.34]);
  for (const [low, high, most] of [[0, 1, 3], [2000.1, 2000.4, 3], [-1e-7, 3e-7, 4], [7, 1e9, 6], [0.99, 2.98, 1]]) {
    const values = ticks(low, high, most);
    assert.ok(values.length >= 2 && values.length <= 2 * most + 3 && values.every((value) => value >= low && value <= high), String(values));
  }
  assert.ok(ticks(1e17, 1e17 + 64, 5).length <= 50, "where the next whole number is no float, they end, too");
  assert.ok(ticks(-1e-300, 2e-300, 5).length >= 2);
});

test("a boundary where a kernel's scores are tiny is as smooth as it is", async () => {
  const points = [[-4, 0.5, "1"], [-6, 0.5, "1"], [1, -2, "-1"]];
  for (const bias of [true, false]) {
    const doc = await documentOf({ ...lab.defaults, data: "points", points, learner: "kernel", gamma: 1, passes: 1, order: "cyclic", bias, tie: "mistake" }, { lab });
    const run = new Run(doc);
    assert.deepEqual(doc.mistakes.step.map((step) => doc.steps[step - 1]), [0, 2]);
    const frame = new Frame(run, 800, 400);
    const [line] = new Fields(run, frame).boundary(new Fields(run, frame).last(run.m));
    // of one positive and one negative term, the boundary is the perpendicular bisector
    const away = line.map(([x, y]) => Math.abs((x + 1.5) * 5 - (y + 0.75) * 2.5) / Math.hypot(5, 2.5));
    assert.ok(line.length > 50 && Math.max(...away) < 1e-6, String(Math.max(...away)));
  }
});
