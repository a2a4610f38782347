// The quiz: before each step, predict whether the example is a mistake, and which way w turns; then step.

import { h, put } from "./dom.js";
import { label, num, vec } from "./formatting.js";

/**
 * The answers to what the next step asks.
 * @param {import("./run.js").Run} run
 * @param {number} t the steps made so far
 */
export function nextQuestion(run, t) {
  if (t >= run.steps) return null;
  const now = run.at(t + 1);
  return { example: now.example, y: now.y, mistake: now.mistake, rival: now.rival, step: t + 1 };
}

/** The ways in which w may turn, for the labels of a run. @param {any} run @param {{ y: number, rival: number }} question */
export function turns(run, question) {
  if (run.K === 1) return { toward: run.dual ? "the example is added with sign +" : "towards x: w ← w + x", away: run.dual ? "the example is added with sign −" : "away from x: w ← w − x", right: question.y === 1 ? "toward" : "away" };
  return null;
}

export class Quiz {
  /**
   * @param {import("./viewer.js").Viewer} viewer
   * @param {HTMLElement} panel
   */
  constructor(viewer, panel) {
    this.viewer = viewer;
    this.panel = panel;
    this.reset();
  }

  reset() {
    this.asked = 0;
    this.right = 0;
    this.feedback = "";
    this.guess = null;
    this.pending = null;
  }

  // The example that the question is about, for the picture.
  upcoming() {
    return this.question?.example ?? null;
  }

  // Ask about the step after t.
  show(t) {
    const { run } = this.viewer;
    if (this.pending !== t) [this.guess, this.pending] = [null, t];
    this.question = nextQuestion(run, t);
    const head = h("h2", null, "Quiz ", h("small", { id: "quiz-score" }, `${this.right} of ${this.asked} right`));
    const said = h("p", { id: "quiz-feedback", role: "status", class: "say" }, this.feedback);
    if (!this.question) {
      put(this.panel, head, said, h("p", { class: "say", id: "quiz-question" }, "That was the last step."));
      return;
    }
    const { example, y, step } = this.question;
    const x = h("p", { class: "sum" }, `Step ${step}: example ${example}, x = ${vec(run.doc.x[example])}, label `, h("span", { class: `label c${y % 7}` }, label(run.classes, y)));
    const button = (id, text, action) => h("button", { type: "button", id, onclick: action }, text);
    const turning = this.guess === "mistake" && turns(run, this.question);
    put(this.panel, head, said, x,
      turning
        ? [h("p", { class: "say", id: "quiz-question" }, "Which way does w turn?"), h("div", { class: "answers" }, button("turn-toward", turning.toward, () => this._answer("toward")), button("turn-away", turning.away, () => this._answer("away")))]
        : [h("p", { class: "say", id: "quiz-question" }, "Is it a mistake, or is it classified right?"), h("div", { class: "answers" }, button("guess-mistake", "a mistake", () => this._guess("mistake")), button("guess-right", "right", () => this._guess("right")))]);
  }

  _guess(guess) {
    this.guess = guess;
    if (guess === "mistake" && this.question.mistake && turns(this.viewer.run, this.question)) {
      this.show(this.pending);
      this.panel.querySelector("button")?.focus();
    } else this._finish(guess === "mistake" ? this.question.mistake : !this.question.mistake, "");
  }

  _answer(turn) {
    this._finish(turn === turns(this.viewer.run, this.question).right, "turn");
  }

  _finish(right, asked) {
    const { run } = this.viewer;
    const { mistake, step, y } = this.question;
    const now = run.at(step);
    const what = run.K === 1 ? `y·score = ${num(now.lead)}` : `the lead is ${num(now.lead)}`;
    const turned = mistake && run.K === 1 && !run.dual ? `, so w turns ${y === 1 ? "towards" : "away from"} x` : "";
    this.asked += 1;
    this.right += Number(right);
    this.feedback = `${right ? "Right" : "No"}: step ${step} is ${mistake ? "a mistake" : "right"} (${what})${turned || asked ? turned : ""}.`;
    this.guess = null;
    this.viewer.go(step);
    this.panel.querySelector("button")?.focus();
  }
}
