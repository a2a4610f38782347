// The state of the page in the fragment of its address, so that a link restores it.

export function readState() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const out = /** @type {Record<string, string>} */ ({});
  for (const [key, value] of parameters) out[key] = value;
  return out;
}

/** @param {Record<string, any>} entries */
export function viewState(entries) {
  const state = /** @type {{ t?: number, views?: string[] }} */ ({});
  if (entries.step !== undefined) {
    state.t = entries.step === "end" ? Infinity : Number(entries.step);
    if (Number.isNaN(state.t)) throw new Error(`step must be a whole number or "end", not ${entries.step}`);
  }
  if (entries.views !== undefined) state.views = String(entries.views).split(",").filter(Boolean);
  return state;
}

let waiting = /** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined);

/**
 * Browsers limit how often the address may change, so only the last change of a burst is written; nothing is, if the address was changed since.
 * @param {Record<string, any>} entries
 */
export function writeState(entries) {
  clearTimeout(waiting);
  const before = location.hash;
  waiting = setTimeout(() => location.hash === before && write(entries), 120);
}

/** @param {Record<string, any>} entries */
function write(entries) {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(entries)) if (value !== undefined && value !== null && value !== "") parameters.set(key, value);
  history.replaceState(null, "", "#" + parameters.toString().replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%3B", ";"));
}
