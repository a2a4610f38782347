// The quiz: before each step, predict whether the example is a mistake, and what changes; then step.

import { h, put } from "./dom.js";
import { label, vec } from "./formatting.js";
import { explanation, questionsAbout } from "./questions.js";

/** @import { Question } from "./questions.js" */
/** @import { Made } from "./run.js" */
/** @import { Viewer } from "./viewer.js" */

export class Quiz {
  /**
   * @param {Viewer} viewer
   * @param {HTMLElement} panel
   */
  constructor(viewer, panel) {
    this.viewer = viewer;
    this.panel = panel;
    /** @type {Made | null} the step that is asked about */
    this.step = null;
    /** @type {Question[]} those about it that are not answered yet */
    this.questions = [];
    this.asked = 0;
    this.right = 0;
    this.feedback = "";
  }

  reset() {
    this.asked = 0;
    this.right = 0;
    this.feedback = "";
    this.step = null;
  }

  /** The example that the question is about, for the picture. */
  upcoming() {
    return this.step?.example ?? null;
  }

  /** Ask about the step after t. @param {number} t */
  show(t) {
    const { run } = this.viewer;
    if (this.step?.t !== t + 1) {
      this.step = t < run.steps ? run.made(t + 1) : null;
      this.questions = this.step ? questionsAbout(run, this.step) : [];
    }
    const head = h("h2", null, "Quiz ", h("small", { id: "quiz-score" }, `${this.right} of ${this.asked} right`));
    const said = h("p", { id: "quiz-feedback", role: "status", class: "say" }, this.feedback);
    const [question] = this.questions;
    if (!this.step || !question) {
      put(this.panel, head, said, h("p", { class: "say", id: "quiz-question" }, "That was the last step."));
      return;
    }
    const { example, y } = this.step;
    const x = h("p", { class: "sum" }, `Step ${(t + 1).toLocaleString("en")}: example ${example}, x = ${vec(run.doc.x[example])}, label `, h("span", { class: `label c${y % 7}` }, label(run.classes, y)));
    const choices = question.choices.map(({ text, right }, i) =>
      h("button", { type: "button", class: "answer", onclick: () => this._answer(right) }, h("kbd", { "aria-hidden": "true" }, String(i + 1)), ` ${text}`));
    put(this.panel, head, said, x, h("p", { class: "say", id: "quiz-question" }, question.ask), h("div", { class: "answers", role: "group", "aria-labelledby": "quiz-question" }, choices));
  }

  /** Give the answer with a number, counted from 1. @param {number} number whether there is one */
  choose(number) {
    const button = this.panel.querySelectorAll("button")[number - 1];
    button?.click();
    return button !== undefined;
  }

  /** @param {boolean} right */
  _answer(right) {
    const { viewer, step } = this;
    if (!step) return;
    this.questions = this.questions.slice(1);
    if (right && this.questions.length) this.show(step.t - 1);
    else {
      this.asked += 1;
      this.right += Number(right);
      this.feedback = `${right ? "Right" : "No"}: ${explanation(viewer.run, step)}`;
      viewer.go(step.t);
    }
    this.panel.querySelector("button")?.focus();
  }
}
