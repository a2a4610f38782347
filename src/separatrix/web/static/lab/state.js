// The state of the page as the fragment of its address, so that a link brings it back.

export function readState() {
  const given = new URLSearchParams(location.hash.slice(1));
  const out = {};
  for (const [key, value] of given) out[key] = value;
  return out;
}

export function viewState(given) {
  const state = {};
  if (given.step !== undefined) state.t = given.step === "end" ? Infinity : Number(given.step) || 0;
  if (given.views !== undefined) state.views = given.views.split(",").filter(Boolean);
  return state;
}

let waiting = null;

// Browsers take only so many changes of the address a second: the last of a burst is written.
export function writeState(entries) {
  clearTimeout(waiting);
  waiting = setTimeout(() => write(entries), 120);
}

function write(entries) {
  const kept = new URLSearchParams();
  for (const [key, value] of Object.entries(entries)) if (value !== undefined && value !== null && value !== "") kept.set(key, value);
  history.replaceState(null, "", "#" + kept.toString().replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%3B", ";"));
}
