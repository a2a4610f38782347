// Helpers that build DOM elements. Strings are inserted as text, never as markup.

/**
 * @typedef {Record<string, any>} Attributes of an element; those that begin with "on" are listeners
 * @typedef {Node | string | null | undefined | false} Leaf null, undefined and false stand for nothing
 * @typedef {Leaf | readonly (Leaf | readonly (Leaf | readonly Leaf[])[])[]} Child
 * @typedef {Event & { target: HTMLInputElement }} Changed what a control tells when it was changed
 */

const SVG = "http://www.w3.org/2000/svg";

/** @param {Child} child @returns {(Node | string)[]} what is to be appended */
function leaves(child) {
  if (Array.isArray(child)) return /** @type {Child[]} */ (child).flatMap(leaves);
  return child === null || child === undefined || child === false ? [] : [/** @type {Node | string} */ (child)];
}

/**
 * @template {Element} T
 * @param {T} element
 * @param {Attributes | null} attributes
 * @param {Child[]} children
 * @returns {T}
 */
function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flatMap(leaves));
  return element;
}

/**
 * An HTML element.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes | null} attributes
 * @param {...Child} children
 */
export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/**
 * An SVG element.
 * @param {string} tag
 * @param {Attributes | null} attributes
 * @param {...Child} children
 */
export function s(tag, attributes, ...children) {
  return filled(/** @type {SVGElement} */ (document.createElementNS(SVG, tag)), attributes, children);
}

/** @param {Element} element whose content is replaced @param {...Child} children */
export function put(element, ...children) {
  element.replaceChildren(...children.flatMap(leaves));
}

/** The element of the page with an id, which must be there. @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element "${id}"`);
  return element;
}

/**
 * Change an element into a fresh one of the same kind, and keep what need not change: the listeners, the focus and open menus of
 * controls that are already there. Children with an id or a data-key are matched by it, others by their place.
 * @param {any} old
 * @param {any} fresh
 */
export function morph(old, fresh) {
  if (old.nodeName !== fresh.nodeName || old.id !== fresh.id) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  // What is being typed stays, until there is another text to show.
  if (old.matches("textarea") && old.defaultValue !== fresh.defaultValue) old.value = fresh.defaultValue;
  const key = (/** @type {any} */ node) => node.dataset?.key || node.id || "";
  const keyed = new Map([...old.childNodes].filter(key).map((node) => [key(node), node]));
  const plain = [...old.childNodes].filter((node) => !key(node));
  const wanted = [...fresh.childNodes].map((child) => {
    const match = key(child) ? keyed.get(key(child)) : plain.shift();
    if (!match || match.nodeName !== child.nodeName) return child;
    morph(match, child);
    return match;
  });
  for (const node of [...old.childNodes]) if (!wanted.includes(node)) node.remove();
  wanted.forEach((node, i) => {
    if (old.childNodes[i] !== node) old.insertBefore(node, old.childNodes[i] ?? null);
  });
  if ("checked" in old && old.checked !== fresh.checked) old.checked = fresh.checked;
  if (old.matches("select, input:not([type=file])") && old !== document.activeElement && old.value !== fresh.value) old.value = fresh.value;
  if (old.matches("select") && old.value !== fresh.value) old.value = fresh.value;
}

/** @param {string} name @param {BlobPart} content @param {string} [type] */
export function save(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
