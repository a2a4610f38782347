// An animated GIF of the picture, step by step: at most 256 colours, each frame compressed by LZW.

const MOST_FRAMES = 60;
const WIDTH = 560;

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

/**
 * @param {{ draw: (canvas: HTMLCanvasElement, t: number) => void, frames: number[], width: number, height: number, delay?: number }} film
 * @returns {Blob}
 */
export function animatedGif({ draw, frames, width, height, delay = 70 }) {
  const [w, h] = [WIDTH, Math.round((WIDTH * height) / width)];
  const source = document.createElement("canvas");
  const target = document.createElement("canvas");
  [target.width, target.height] = [w, h];
  const context = /** @type {CanvasRenderingContext2D} */ (target.getContext("2d", { willReadFrequently: true }));
  const images = frames.map((t) => {
    draw(source, t);
    context.drawImage(source, 0, 0, w, h);
    return context.getImageData(0, 0, w, h).data;
  });
  return new Blob([encodedGif(images, w, h, frames.map((_, k) => (k + 1 === frames.length ? 300 : delay)))], { type: "image/gif" });
}

/**
 * The bytes of a GIF that repeats for ever.
 * @param {Uint8ClampedArray[]} images RGBA
 * @param {number} width
 * @param {number} height
 * @param {number[]} delays in hundredths of a second
 */
export function encodedGif(images, width, height, delays) {
  const { palette, indexOf } = paletteOf(images);
  const short = (/** @type {number} */ value) => [value & 255, value >> 8];
  const bytes = [...ascii("GIF89a"), ...short(width), ...short(height), 0xf7, 0, 0, ...palette];
  bytes.push(0x21, 0xff, 11, ...ascii("NETSCAPE2.0"), 3, 1, 0, 0, 0);
  images.forEach((image, k) => {
    bytes.push(0x21, 0xf9, 4, 4, ...short(delays[k]), 0, 0, 0x2c, 0, 0, 0, 0, ...short(width), ...short(height), 0, 8);
    const pixels = new Uint8Array(width * height);
    for (let i = 0; i < pixels.length; i += 1) pixels[i] = indexOf(image[4 * i], image[4 * i + 1], image[4 * i + 2]);
    const data = compressed(pixels);
    for (let at = 0; at < data.length; at += 255) {
      const block = data.subarray(at, at + 255);
      bytes.push(block.length, ...block);
    }
    bytes.push(0);
  });
  bytes.push(0x3b);
  return Uint8Array.from(bytes);
}

/** @param {string} text */
function ascii(text) {
  return Array.from(text, (mark) => mark.charCodeAt(0));
}

/**
 * The 256 colours that occur most often, in steps of 8, and the nearest of them to any colour.
 * @param {Uint8ClampedArray[]} images
 */
function paletteOf(images) {
  const counts = new Map();
  const key = (/** @type {number} */ r, /** @type {number} */ g, /** @type {number} */ b) => ((r >> 3) << 10) | ((g >> 3) << 5) | (b >> 3);
  for (const image of images) {
    for (let i = 0; i < image.length; i += 4) {
      const code = key(image[i], image[i + 1], image[i + 2]);
      const entry = counts.get(code);
      if (entry) entry.count += 1;
      else counts.set(code, { count: 1, rgb: [image[i], image[i + 1], image[i + 2]] });
    }
  }
  const colours = [...counts.values()].sort((a, b) => b.count - a.count).slice(0, 256).map(({ rgb }) => rgb);
  const nearest = new Map();
  const indexOf = (/** @type {number} */ r, /** @type {number} */ g, /** @type {number} */ b) => {
    const code = key(r, g, b);
    if (!nearest.has(code)) {
      let [best, least] = [0, Infinity];
      colours.forEach(([x, y, z], i) => {
        const distance = (x - r) ** 2 + (y - g) ** 2 + (z - b) ** 2;
        if (distance < least) [best, least] = [i, distance];
      });
      nearest.set(code, best);
    }
    return nearest.get(code);
  };
  return { palette: Array.from({ length: 256 }, (_, i) => colours[i] ?? [0, 0, 0]).flat(), indexOf };
}

/** @param {Uint8Array} pixels @returns {Uint8Array} their LZW code, as GIF packs it: codes of 9 to 12 bits */
function compressed(pixels) {
  const [clear, end] = [256, 257];
  const out = new Uint8Array(pixels.length * 2 + 16);
  let [length, buffer, filled] = [0, 0, 0];
  let size = 9;
  const emit = (/** @type {number} */ code) => {
    buffer |= code << filled;
    for (filled += size; filled >= 8; filled -= 8) {
      out[length] = buffer & 255;
      length += 1;
      buffer >>>= 8;
    }
  };
  let table = new Map();
  let next = 258;
  emit(clear);
  let prefix = pixels[0];
  for (let i = 1; i < pixels.length; i += 1) {
    const pair = (prefix << 8) | pixels[i];
    const known = table.get(pair);
    if (known !== undefined) {
      prefix = known;
      continue;
    }
    emit(prefix);
    if (next < 4096) {
      table.set(pair, next);
      if (next === 1 << size && size < 12) size += 1;
      next += 1;
    } else {
      emit(clear);
      [table, next, size] = [new Map(), 258, 9];
    }
    prefix = pixels[i];
  }
  emit(prefix);
  emit(end);
  if (filled > 0) {
    out[length] = buffer & 255;
    length += 1;
  }
  return out.subarray(0, length);
}
