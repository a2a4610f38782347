// A GIF that repeats for ever: at most 255 colours; each frame holds what differs from the one before, compressed by LZW.

const CLEAR = 255; // the index of the pixels that stay as they are

/**
 * The bytes of a GIF.
 * @param {Uint8ClampedArray[]} images RGBA
 * @param {number} width
 * @param {number} height
 * @param {number[]} delays in hundredths of a second
 * @param {number[]} certain colours, as 0xRRGGBB, that are kept however seldom they occur
 */
export function encodedGif(images, width, height, delays, certain = []) {
  const { palette, indexOf } = paletteOf(images, certain);
  const short = (/** @type {number} */ value) => [value & 255, value >> 8];
  const bytes = [...ascii("GIF89a"), ...short(width), ...short(height), 0xf7, 0, 0, ...palette];
  bytes.push(0x21, 0xff, 11, ...ascii("NETSCAPE2.0"), 3, 1, 0, 0, 0);
  let shown = /** @type {Uint8Array | null} */ (null);
  images.forEach((image, k) => {
    bytes.push(0x21, 0xf9, 4, 5, ...short(delays[k]), CLEAR, 0, 0x2c, 0, 0, 0, 0, ...short(width), ...short(height), 0, 8);
    const pixels = new Uint8Array(width * height);
    for (let i = 0; i < pixels.length; i += 1) pixels[i] = indexOf(image[4 * i], image[4 * i + 1], image[4 * i + 2]);
    const data = compressed(shown ? pixels.map((index, i) => (index === shown?.[i] ? CLEAR : index)) : pixels);
    shown = pixels;
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
 * 255 colours, the certain ones and those that occur most often, and the nearest of them to any colour.
 * @param {Uint8ClampedArray[]} images
 * @param {number[]} certain
 */
function paletteOf(images, certain) {
  /** @type {Map<number, number>} */
  const counts = new Map();
  const key = (/** @type {number} */ r, /** @type {number} */ g, /** @type {number} */ b) => (r << 16) | (g << 8) | b;
  for (const image of images) {
    for (let i = 0; i < image.length; ) {
      const colour = key(image[i], image[i + 1], image[i + 2]);
      const from = i;
      do i += 4;
      while (i < image.length && key(image[i], image[i + 1], image[i + 2]) === colour);
      counts.set(colour, (counts.get(colour) ?? 0) + (i - from) / 4);
    }
  }
  const often = [...counts.keys()].sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0));
  const chosen = [...new Set([...certain.filter((colour) => counts.has(colour)), ...often])].slice(0, CLEAR);
  const colours = chosen.map((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]);
  /** @type {Map<number, number>} */
  const nearest = new Map(chosen.map((colour, i) => [colour, i]));
  const indexOf = (/** @type {number} */ r, /** @type {number} */ g, /** @type {number} */ b) => {
    const colour = key(r, g, b);
    const known = nearest.get(colour);
    if (known !== undefined) return known;
    let [best, least] = [0, Infinity];
    colours.forEach(([x, y, z], i) => {
      const distance = (x - r) ** 2 + (y - g) ** 2 + (z - b) ** 2;
      if (distance < least) [best, least] = [i, distance];
    });
    nearest.set(colour, best);
    return best;
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
