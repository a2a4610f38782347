// The lab: the controls make a recipe, the engine in the browser trains, the viewer shows every step; the address holds the recipe.

import { Controls } from "./controls.js";
import { byId, h, save } from "./dom.js";
import { BLANK_WINDOW, Editor, untrained } from "./editor.js";
import { documentOf } from "./engine/document.js";
import { Superseded } from "./engine/errors.js";
import { asLabels, classesOf } from "./engine/labels.js";
import { checkedRecipe } from "./engine/recipe.js";
import { fileName } from "./exports.js";
import { count, displayName } from "./formatting.js";
import { Lecture, checkedLecture } from "./lecture.js";
import { fromShortLink, isShortLink, toShortLink } from "./links.js";
import { fromAddress, toAddress } from "./recipe.js";
import { isSelfContained, resource } from "./resources.js";
import { runPage } from "./runpage.js";
import { readState, viewState, writeState } from "./state.js";
import { Viewer } from "./viewer.js";

/** @import { Lab, Point, Recipe, RunDocument } from "./engine/types.js" */

const message = byId("message");
const summary = byId("summary");
// These three are set by start(), before anything is shown that a user could operate.
/** @type {Lab} */
let lab;
/** @type {Recipe} */
let recipe;
/** @type {Controls} */
let controls;
let asked = 0; // the number of the last run that was asked for; earlier ones are not shown
let wanted = 0; // the number of the last address or lecture that was asked for

/** Begin to wait for an address or a lecture. @returns {() => boolean} whether nothing else has been asked for since */
function want() {
  wanted += 1;
  const [mine, run] = [wanted, asked];
  return () => mine === wanted && run === asked;
}

/** @param {string} text */
function say(text, kind = "") {
  message.textContent = text;
  message.className = kind;
}

/** Tell what went wrong. @param {unknown} error */
function fail(error) {
  say(error instanceof Error ? error.message : String(error), "bad");
}

const extras = [
  h("button", { type: "button", id: "save-page", title: "Save this run as a standalone page", onclick: savePage }, "Page"),
  h("button", { type: "button", id: "copy-link", title: "Copy a short link to this state of the lab", onclick: copyLink }, "Copy link"),
];
const viewer = new Viewer(byId("viewer"), { onChange: keep, extras });
const editor = new Editor(viewer, {
  onPoints: (/** @type {Point[]} */ points) => draw(points),
  onStart: (/** @type {Point[]} */ points, /** @type {RunDocument} */ doc) => {
    recipe = { ...recipe, data: "points", points, positive: "", columns: [], bias: doc.bias, tie: doc.tie };
    run(Infinity);
  },
});
const lecture = new Lecture(byId("lecture"), {
  onScreen: (screen) => {
    recipe = /** @type {Recipe} */ (screen.recipe);
    setQuiz(screen.quiz === true);
    openRecipe(screen.step === "end" ? Infinity : screen.step, screen.views);
  },
  onLeave: () => {
    setQuiz(false);
    keep();
    viewer.resize();
    byId("example-lecture").focus();
  },
});

/** @param {boolean} on */
function setQuiz(on) {
  viewer.setQuiz(on);
  byId("toggle-quiz").setAttribute("aria-pressed", String(on));
}

// The state of the page beside the recipe, for the address and for links.
function place() {
  const { t, views } = viewer.state;
  return { step: viewer.loaded?.steps && t === viewer.loaded.steps ? "end" : t, views: views.join(","), quiz: viewer.quizzing ? "1" : undefined };
}

function keep() {
  if (lecture.screens) {
    if (lecture.name) writeState({ lecture: lecture.name, screen: lecture.at + 1 });
    return;
  }
  const embed = document.body.classList.contains("embed") ? "1" : undefined;
  const address = toAddress(recipe, lab.defaults);
  writeState(address === null ? { data: recipe.data } : { ...address, ...place(), embed });
}

/** @param {RunDocument} doc @param {{ t?: number, views?: string[] }} state */
function show(doc, state) {
  if (recipe.data !== "points") viewer.window = null;
  byId("viewer").hidden = false;
  controls.show(recipe, doc); // before the picture, which fills the remaining space
  editor.take(recipe.data === "points" ? recipe.points : null, doc);
  viewer.load(doc, state);
  const counts = `${count(doc.n_train, "example")}, ${count(doc.features.length, "feature")}, ${count(doc.classes.length, "class", "classes")}`;
  summary.textContent = doc.n_train ? `${displayName(doc.name)}: ${counts}` : "Click in the picture to add points.";
  keep();
}

/** The document of the recipe. Only a CSV text that is too long for the browser is sent to the server. @param {() => boolean} isCurrent */
async function obtain(isCurrent) {
  if (recipe.data !== "csv" || recipe.csv.length <= lab.limits.csv_in_browser) {
    return documentOf(recipe, { lab, readSet: (name) => resource(`${name}.json`), isCurrent });
  }
  const longest = `${recipe.file} has ${(recipe.csv.length / 1e6).toFixed(1)} MB: without a server the lab reads at most ${lab.limits.csv_in_browser / 1e6} MB; start "separatrix lab" for more`;
  if (isSelfContained()) throw new Error(longest);
  const reply = await fetch("api/run", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(recipe) });
  if (reply.ok) return reply.json();
  const problem = await reply.json().catch(() => ({}));
  throw new Error(problem.error ?? longest);
}

/** Train, and show step t of the result. @param {number} t @param {string[]} [views] */
async function run(t, views) {
  asked += 1;
  const mine = asked;
  viewer.stop();
  const waiting = setTimeout(() => say("Running …", "quiet"), 250);
  try {
    const doc = await obtain(() => mine === asked);
    if (mine !== asked) return;
    say("");
    show(doc, { t, views });
  } catch (error) {
    if (mine !== asked || error instanceof Superseded) return;
    fail(error);
    if (lecture.screens) byId("viewer").hidden = true; // else the picture of the screen before would stand below this caption
  } finally {
    clearTimeout(waiting);
  }
}

/** @param {Point[]} points */
function draw(points) {
  recipe = { ...recipe, points };
  const used = new Set(points.map(([, , name]) => name));
  if (used.size > 1) {
    run(Infinity, viewer.state.views.length ? viewer.state.views : undefined);
    return;
  }
  asked += 1;
  say(points.length ? "Add a point of another class: a boundary needs two classes." : "");
  show(untrained(points, editor.names), { t: 0 });
}

async function savePage() {
  try {
    save(fileName(viewer.run, "html"), runPage(await resource("run.json"), viewer.run.doc), "text/html");
  } catch (error) {
    fail(error);
  }
}

async function copyLink() {
  const settings = Object.fromEntries(Object.entries(recipe).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(lab.defaults[/** @type {keyof Recipe} */ (key)])));
  const link = `${location.href.split("#")[0]}#${await toShortLink({ ...settings, ...place() })}`;
  if (link.length > lab.limits.link) {
    say("The data are too long for a link: save the page instead.", "bad");
    return;
  }
  try {
    await navigator.clipboard.writeText(link);
    say("Link copied.", "quiet");
  } catch {
    say(`Copy this link: ${link}`, "quiet");
  }
}

/**
 * @param {any} content of a lecture's file, or a promise of it
 * @param {string} name by which the address finds it again; "" for a file that was chosen
 */
async function openLecture(content, name = "", screen = 1) {
  const isWanted = want();
  try {
    const checked = checkedLecture(await content, lab);
    if (isWanted()) lecture.begin(checked, name, screen - 1);
  } catch (error) {
    if (isWanted()) refuse(error);
  }
}

function connectModes() {
  byId("toggle-quiz").addEventListener("click", () => {
    setQuiz(!viewer.quizzing);
    keep();
  });
  byId("example-lecture").addEventListener("click", () => openLecture(resource("example.lecture.json"), "example"));
  byId("lecture-file").addEventListener("change", async (event) => {
    const input = /** @type {HTMLInputElement} */ (event.target);
    const file = input.files?.[0];
    if (!file) return;
    try {
      await openLecture(JSON.parse(await file.text()));
    } catch (problem) {
      say(`${file.name} is not JSON: ${/** @type {Error} */ (problem).message}`, "bad");
    }
    input.value = "";
  });
}

async function start() {
  byId("choose").toggleAttribute("open", innerWidth > 900);
  lab = await resource("lab.json");
  controls = new Controls(/** @type {HTMLFormElement} */ (byId("controls")), lab, {
    onRecipe: (/** @type {Recipe} */ changed) => {
      const shown = viewer.loaded;
      const end = shown && viewer.state.t === shown.steps && shown.steps > 0;
      const same = changed.learner === recipe.learner && shown;
      recipe = changed;
      controls.show(recipe, shown?.doc.recipe.data === recipe.data ? shown.doc : null);
      if (recipe.data === "csv" && !recipe.csv) return; // the data are still to come
      run(end ? Infinity : 0, same ? viewer.state.views : undefined);
    },
    onMessage: (/** @type {string} */ text) => say(text, "bad"),
    onDraw: (/** @type {Partial<Recipe>} */ fresh) => {
      recipe = { ...recipe, ...fresh, points: [] };
      editor.begin([], ["-1", "1"], BLANK_WINDOW);
      draw([]);
    },
    onWait: (/** @type {Recipe} */ changed) => {
      asked += 1;
      recipe = changed;
    },
  });
  connectModes();
  addEventListener("hashchange", () => open().catch(refuse));
  await open().catch(refuse);
  const later = globalThis.requestIdleCallback ?? setTimeout; // Safari has no idle callbacks
  const whole = [...lab.sets.map((name) => `${name}.json`), "example.lecture.json", "run.json"];
  later(() => whole.forEach((name) => resource(name).catch(() => {}))); // for working offline
}

/** Tell why an address cannot be shown, with controls to choose something else. @param {unknown} error */
function refuse(error) {
  recipe ??= lab.defaults;
  controls.show(recipe, viewer.loaded?.doc);
  fail(error);
}

// Show what the address says.
async function open() {
  lecture.close(); // the address may have changed from that of a lecture: "back" in the browser does that
  const isWanted = want();
  const fragment = location.hash.slice(1);
  const { step, views, quiz, embed, lecture: named, screen, ...settings } = isShortLink(fragment) ? await fromShortLink(fragment) : readState();
  if (!isWanted()) return;
  const { t = 0, views: chosen } = viewState({ ...(step === undefined ? {} : { step: String(step) }), ...(views === undefined ? {} : { views }) });
  recipe = checkedRecipe(isShortLink(fragment) ? settings : fromAddress(settings, lab.defaults), lab);
  document.body.classList.toggle("embed", embed === "1");
  setQuiz(quiz === "1");
  const link = byId("open-full");
  link.setAttribute("href", `${location.href.split("#")[0]}#${fragment.replace(/&?embed=1/, "")}`);
  if (named !== undefined) {
    if (!/^[\w-]+$/.test(named)) throw new Error(`"${named}" is not the name of a lecture: letters, digits, - and _ can be used`);
    await openLecture(resource(`${named}.lecture.json`), named, Number(screen) || 1);
    return;
  }
  await openRecipe(t, chosen);
}

/** @param {number} t @param {string[]} [views] */
async function openRecipe(t, views) {
  controls.show(recipe);
  document.body.classList.toggle("drawing", recipe.data === "points" && !recipe.points.length); // the reader is asked to draw
  if (recipe.data === "points") {
    const names = classesOf(asLabels(recipe.points.map(([, , name]) => name))).map(String);
    editor.begin(recipe.points, names.length < 2 ? [...new Set(["-1", "1", ...names])] : names, recipe.points.length ? null : BLANK_WINDOW);
    if (names.length < 2) {
      draw(recipe.points);
      return;
    }
  }
  if (recipe.data === "csv" && !recipe.csv) return; // the controls ask for the data
  await run(t, views);
}

start().catch((error) => fail(error));
