// The tables and data that Python wrote beside the page: from elements of a self-contained page, else from files.

const loaded = new Map();

/**
 * The JSON with a name: embedded in the page, or the file of that name. Each is read once.
 * @param {string} name
 * @returns {Promise<any>}
 */
export function resource(name) {
  if (!loaded.has(name)) {
    loaded.set(name, read(name));
    loaded.get(name).catch(() => loaded.delete(name)); // to be tried again
  }
  return loaded.get(name);
}

/** @param {string} name */
async function read(name) {
  const embedded = document.getElementById(name);
  if (embedded) return JSON.parse(embedded.textContent ?? "");
  if (isSelfContained()) throw new Error(`${name} is not part of this page, and a page on disk can read no other file: open it by hand`);
  const reply = await fetch(name).catch(() => { throw new Error(`${name} could not be read: there is no connection`); });
  if (!reply.ok) throw new Error(`${name} could not be read (status ${reply.status})`);
  return reply.json();
}

/** Whether this page is one file that has no server. */
export function isSelfContained() {
  return document.getElementById("lab.json") !== null;
}
