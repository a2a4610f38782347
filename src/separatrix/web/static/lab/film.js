// The film of a run: the picture after each step with a caption below it, as an animated GIF.

import { SHAPES, count, label, vec } from "./formatting.js";
import { encodedGif } from "./gif.js";
import { outcome } from "./panels.js";
import { CanvasPen } from "./pen.js";
import { Picture, theme } from "./picture.js";
import { explanation } from "./questions.js";

/** @import { Shown } from "./picture.js" */
/** @import { Run } from "./run.js" */

const MOST_FRAMES = 60;
const [WIDTH, HEIGHT, CAPTION] = [640, 360, 80];
const SIZE = 15; // of the letters of a caption, in pixels
const [SLOW, QUICK, LAST] = [150, 60, 400]; // hundredths of a second: of a few frames, of many, and of the last
const FEW = 15;
const MOST_KEY = 34; // the most letters of a key of the classes that has room

/**
 * The steps to show: all of them if they are few, else those of mistakes, else equally many of them; always the last.
 * @param {{ steps: number, mistakeSteps: number[] }} run
 */
export function framesOf(run) {
  const all = Array.from({ length: run.steps + 1 }, (_, t) => t);
  const chosen = all.length <= MOST_FRAMES ? all : [0, ...run.mistakeSteps, run.steps];
  if (chosen.length <= MOST_FRAMES) return [...new Set(chosen)];
  return [...new Set(Array.from({ length: MOST_FRAMES }, (_, k) => chosen[Math.round((k * (chosen.length - 1)) / (MOST_FRAMES - 1))]))];
}

/** What happened at a step, in one sentence. @param {Run} run @param {number} t */
function sentence(run, t) {
  if (t === 0) return "Training starts from w = 0.";
  const short = run.K === 1 && !run.dual && run.width <= 3;
  const text = explanation(run, run.made(t)).replace(/^step \d+ is /, "");
  return text[0].toUpperCase() + text.slice(1, -1) + (short ? `: w = ${vec(run.weights(run.mistakesAt(t)))}.` : ".");
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Run} run
 * @param {number} t
 */
function drawCaption(context, run, t) {
  const colours = theme();
  const pen = new CanvasPen(context);
  pen.rect(0, HEIGHT, WIDTH, CAPTION, { fill: colours.paper });
  const now = run.at(t);
  const counts = [`Step ${t.toLocaleString("en")} of ${run.steps.toLocaleString("en")}`, now.pass ? `pass ${now.pass}` : "", count(now.k, "mistake")].filter(Boolean).join(", ");
  pen.text(counts, 14, HEIGHT + 22, { size: 15, weight: 700, fill: colours.ink });
  context.font = "600 13px sans-serif";
  let right = WIDTH - 14;
  const key = run.classes.map((_, c) => `${SHAPES[c % 7]} ${label(run.classes, c)}`);
  if (key.join("").length <= MOST_KEY) [...key.entries()].reverse().forEach(([c, text]) => {
    pen.text(text, right, HEIGHT + 22, { size: 13, weight: 600, fill: colours.classes[c % 7], align: "end" });
    right -= context.measureText(text).width + 16;
  });
  const text = t === run.steps ? outcome(run) : sentence(run, t);
  context.font = `400 ${SIZE}px sans-serif`;
  const widthOf = (/** @type {string} */ line) => context.measureText(line).width;
  const lines = wrapped(text, (line) => widthOf(line) <= WIDTH - 40);
  const size = Math.min(SIZE, (SIZE * (WIDTH - 40)) / Math.max(...lines.map(widthOf)));
  const fill = now.mistake && t < run.steps ? colours.bad : colours.ink;
  lines.forEach((line, i) => pen.text(line, 14, HEIGHT + 45 + 20 * i, { size, fill }));
}

/** @param {string} text @param {(line: string) => boolean} fits @returns {string[]} at most two lines, the second as long as it gets */
function wrapped(text, fits) {
  const words = text.split(" ");
  let count = words.length;
  while (count > 1 && !fits(words.slice(0, count).join(" "))) count -= 1;
  return [words.slice(0, count).join(" "), words.slice(count).join(" ")].filter(Boolean);
}

// The colours that have a meaning; a ring that one frame has must not take another's.
function certainColours() {
  const { classes, views, ...others } = theme();
  return [...classes, ...Object.values(views), ...Object.values(others)].map((colour) => parseInt(colour.slice(1), 16)); // #rrggbb
}

/**
 * @param {Run} run
 * @param {Shown} state which boundaries are shown
 * @param {number[] | null} window the part of the plane that is shown, if it is fixed
 * @returns {Blob}
 */
export function animatedGif(run, state, window) {
  const picture = new Picture(run, WIDTH, HEIGHT, window);
  const canvas = document.createElement("canvas");
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true }));
  const frames = framesOf(run);
  const images = frames.map((t) => {
    picture.onCanvas(canvas, { ...state, t }, 1, CAPTION);
    drawCaption(context, run, t);
    return context.getImageData(0, 0, canvas.width, canvas.height).data;
  });
  const each = frames.length <= FEW ? SLOW : QUICK;
  const delays = frames.map((_, k) => (k + 1 === frames.length ? LAST : each));
  return new Blob([encodedGif(images, WIDTH, HEIGHT + CAPTION, delays, certainColours())], { type: "image/gif" });
}
