// The lecture: screens of a small JSON file, each with a recipe, a step, a title and a caption, in large type.

import { h, put } from "./dom.js";
import { checkedRecipe } from "./engine/recipe.js";
import { VIEWS } from "./picture.js";

/** @import { Lab } from "./engine/types.js" */

export const LECTURE_FORMAT = "separatrix lecture 1";
const FIELDS = ["title", "caption", "recipe", "step", "views", "quiz"];

const VIEW_NAMES = VIEWS.map(({ name }) => name);

export class LectureError extends Error {}

/**
 * @typedef {{ title: string, caption: string, recipe: Record<string, any>, step: number | "end", views?: string[], quiz?: boolean }} Screen
 */

/**
 * The screens of a lecture, checked: what is wrong is told with its screen.
 * @param {any} content
 * @param {Lab} lab
 * @returns {{ title: string, screens: Screen[] }}
 */
export function checkedLecture(content, lab) {
  const fail = /** @type {(text: string) => never} */ ((text) => { throw new LectureError(`this is not a lecture: ${text}`); });
  if (content?.format !== LECTURE_FORMAT) fail(`"format" must be "${LECTURE_FORMAT}"`);
  if (!Array.isArray(content.screens) || !content.screens.length) fail('"screens" must be a list with at least one screen');
  const screens = content.screens.map((/** @type {any} */ screen, /** @type {number} */ k) => {
    const where = `screen ${k + 1}`;
    const unknown = Object.keys(screen ?? {}).find((key) => !FIELDS.includes(key));
    if (typeof screen !== "object" || screen === null || Array.isArray(screen)) fail(`${where} must be an object`);
    if (unknown) fail(`${where} has the unknown field "${unknown}"; the fields are ${FIELDS.join(", ")}`);
    const { step = 0, recipe = {}, views, quiz = false } = screen;
    if (typeof recipe !== "object" || recipe === null || Array.isArray(recipe)) fail(`${where}: "recipe" must be an object with settings, as {"data": "iris"}`);
    if (step !== "end" && !(Number.isInteger(step) && step >= 0)) fail(`${where}: "step" must be a whole number or "end"`);
    for (const key of ["title", "caption"]) if (screen[key] !== undefined && typeof screen[key] !== "string") fail(`${where}: "${key}" must be text`);
    if (typeof quiz !== "boolean") fail(`${where}: "quiz" must be true or false`);
    if (views !== undefined && !(Array.isArray(views) && views.every((view) => VIEW_NAMES.includes(view)))) fail(`${where}: "views" must be a list of ${VIEW_NAMES.join(", ")}`);
    try {
      return { title: "", caption: "", ...screen, step, recipe: checkedRecipe(recipe, lab) };
    } catch (problem) {
      return fail(`${where}: ${/** @type {Error} */ (problem).message}`);
    }
  });
  return { title: String(content.title ?? "Lecture"), screens };
}

export class Lecture {
  /**
   * @param {HTMLElement} bar where title, caption and buttons go
   * @param {{ onScreen: (screen: Screen) => void, onLeave: () => void }} listeners
   */
  constructor(bar, { onScreen, onLeave }) {
    this.bar = bar;
    this.onScreen = onScreen;
    this.onLeave = onLeave;
    this.title = "";
    this.name = "";
    /** @type {Screen[] | null} null while no lecture is shown */
    this.screens = null;
    this.at = 0;
    document.addEventListener("keydown", (event) => this._key(event));
  }

  /** @param {{ title: string, screens: Screen[] }} lecture @param {string} name in the address */
  begin({ title, screens }, name = "", at = 0) {
    this.title = title;
    this.name = name;
    this.screens = screens;
    document.body.classList.add("lecture");
    this.go(at);
  }

  // Take the lecture off the page, for what is to be shown instead.
  close() {
    this.screens = null;
    document.body.classList.remove("lecture");
    put(this.bar);
  }

  leave() {
    this.close();
    this.onLeave();
  }

  /** @param {number} at */
  go(at) {
    if (!this.screens) return;
    this.at = Math.max(0, Math.min(this.screens.length - 1, at));
    const screen = this.screens[this.at];
    const button = (/** @type {string} */ id, /** @type {string} */ text, /** @type {string} */ title, /** @type {() => void} */ action, disabled = false) => h("button", { type: "button", id, title, "aria-label": title, disabled, onclick: action }, text);
    const focused = this.bar.contains(document.activeElement) ? document.activeElement?.id : undefined;
    put(this.bar,
      h("div", { class: "lecture-head" }, h("h1", { id: "screen-title" }, screen.title || this.title),
        h("span", { class: "quiet", id: "screen-number" }, `${this.at + 1} of ${this.screens.length}`),
        button("screen-back", "◀", "Previous screen (Page Up)", () => this.go(this.at - 1), this.at === 0),
        button("screen-forward", "▶", "Next screen (Page Down)", () => this.go(this.at + 1), this.at + 1 === this.screens.length),
        button("leave-lecture", "Leave", "Leave the lecture (Escape)", () => this.leave())),
      h("p", { class: "caption", id: "caption", role: "status" }, screen.caption));
    const again = [focused, "screen-forward", "screen-back"].map((id) => this.bar.querySelector(`#${id}:enabled`)).find(Boolean);
    if (focused) /** @type {HTMLElement | undefined} */ (again)?.focus();
    this.onScreen(screen);
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (!this.screens || event.ctrlKey || event.metaKey || event.altKey) return;
    /** @type {Record<string, () => void>} */
    const moves = { PageDown: () => this.go(this.at + 1), PageUp: () => this.go(this.at - 1), Escape: () => this.leave() };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }
}
