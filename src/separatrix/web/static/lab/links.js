// Short links: the recipe, its drawn points and the state of the view, compressed into the fragment of an address.

const VERSION = "1";
const PREFIX = `${VERSION}.`;
const MOST = 4_000_000; // the bytes of settings; a few thousand letters can stand for far more than a page can hold

/** What is wrong with a link, in one sentence. */
export class LinkError extends Error {}

/** @param {string} fragment whether it is a short link, of whatever version */
export function isShortLink(fragment) {
  return /^\d+\./.test(fragment);
}

/**
 * @param {Uint8Array} bytes
 * @param {TransformStream} transform
 */
async function through(bytes, transform) {
  const reader = new Blob([/** @type {BlobPart} */ (bytes)]).stream().pipeThrough(transform).getReader();
  const parts = /** @type {BlobPart[]} */ ([]);
  for (let [size, part] = [0, await reader.read()]; !part.done; part = await reader.read()) {
    size += part.value.length;
    if (size > MOST) throw new LinkError(`this link holds more than the lab reads from one: ${MOST / 1e6} MB of settings`);
    parts.push(part.value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/**
 * The fragment that stands for some settings: JSON, deflated, in the alphabet of addresses.
 * @param {Record<string, any>} settings
 */
export async function toShortLink(settings) {
  const text = JSON.stringify(settings);
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  return PREFIX + btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/**
 * The settings of a short link. Punctuation behind it, as a sentence or an e-mail adds, is left out.
 * @param {string} fragment
 * @returns {Promise<Record<string, any>>}
 */
export async function fromShortLink(fragment) {
  if (!fragment.startsWith(PREFIX)) throw new LinkError(`this link has the format ${fragment.split(".")[0]}, which this version of the lab does not know`);
  try {
    const code = fragment.slice(PREFIX.length).replace(/[^\w-]+$/, "");
    const bytes = Uint8Array.from(atob(code.replaceAll("-", "+").replaceAll("_", "/")), (mark) => mark.charCodeAt(0));
    const settings = JSON.parse(new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw"))));
    if (typeof settings !== "object" || settings === null || Array.isArray(settings)) throw new Error("no settings");
    return settings;
  } catch (problem) {
    if (problem instanceof LinkError) throw problem;
    throw new LinkError("this link is damaged: part of it is missing or was changed");
  }
}
