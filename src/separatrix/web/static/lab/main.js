// The lab: the controls make a recipe, the engine in the browser trains, the viewer shows every step; the address holds the recipe.

import { Controls } from "./controls.js";
import { h, save } from "./dom.js";
import { BLANK_WINDOW, Editor, untrained } from "./editor.js";
import { documentOf } from "./engine/document.js";
import { Superseded } from "./engine/errors.js";
import { checkedRecipe } from "./engine/recipe.js";
import { fileName } from "./exports.js";
import { count } from "./formatting.js";
import { Lecture, checkedLecture } from "./lecture.js";
import { fromShortLink, isShortLink, toShortLink } from "./links.js";
import { fromAddress, toAddress } from "./recipe.js";
import { isSelfContained, resource } from "./resources.js";
import { runPage } from "./runpage.js";
import { readState, viewState, writeState } from "./state.js";
import { Viewer } from "./viewer.js";

const message = document.getElementById("message");
const summary = document.getElementById("summary");
let lab = null;
let recipe = null;
let asked = 0; // the number of the last run that was asked for; earlier ones are not shown
let controls = null;

function say(text, kind = "") {
  message.textContent = text;
  message.className = kind;
}

// Tell what went wrong.
function fail(error) {
  say(error instanceof Error ? error.message : String(error), "bad");
}

const extras = [
  h("button", { type: "button", id: "save-page", title: "Save this run as a standalone page", onclick: savePage }, "Page"),
  h("button", { type: "button", id: "copy-link", title: "Copy a short link to this state of the lab", onclick: copyLink }, "Copy link"),
];
const viewer = new Viewer(document.getElementById("viewer"), { onChange: keep, extras });
const editor = new Editor(viewer, {
  onPoints: (points) => draw(points),
  onStart: (points, doc) => {
    recipe = { ...recipe, data: "points", points, positive: "", columns: [], bias: doc.bias, tie: doc.tie };
    run(Infinity);
  },
});
const lecture = new Lecture(document.getElementById("lecture"), {
  onScreen: (screen) => {
    recipe = screen.recipe;
    setQuiz(screen.quiz === true);
    openRecipe(screen.step === "end" ? Infinity : screen.step, screen.views);
  },
  onLeave: () => {
    setQuiz(false);
    keep();
    viewer.resize();
  },
});

function setQuiz(on) {
  viewer.setQuiz(on);
  document.getElementById("toggle-quiz").setAttribute("aria-pressed", String(on));
}

// The state of the page beside the recipe, for the address and for links.
function place() {
  const { t, views } = viewer.state;
  return { step: viewer.run?.steps && t === viewer.run.steps ? "end" : t, views: views.join(","), quiz: viewer.quizzing ? "1" : undefined };
}

function keep() {
  if (lecture.screens) return;
  const embed = document.body.classList.contains("embed") ? "1" : undefined;
  const address = toAddress(recipe, lab.defaults);
  writeState(address === null ? { data: recipe.data } : { ...address, ...place(), embed });
}

function show(doc, state) {
  if (recipe.data !== "points") viewer.window = null;
  document.getElementById("viewer").hidden = false;
  controls.show(recipe, doc); // before the picture, which fills the remaining space
  editor.take(recipe.data === "points" ? recipe.points : null, doc);
  viewer.load(doc, state);
  const counts = `${count(doc.n_train, "example")}, ${count(doc.features.length, "feature")}, ${count(doc.classes.length, "class", "classes")}`;
  summary.textContent = doc.n_train ? `${doc.name}: ${counts}` : "Click in the picture to add points.";
  keep();
}

// The document of the recipe. Only a CSV text that is too long for the browser is sent to the server.
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

// Train, and show step t of the result.
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
    if (mine === asked && !(error instanceof Superseded)) fail(error);
  } finally {
    clearTimeout(waiting);
  }
}

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
  const settings = Object.fromEntries(Object.entries(recipe).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(lab.defaults[key])));
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

async function openLecture(content) {
  try {
    lecture.begin(checkedLecture(content, lab.defaults));
  } catch (error) {
    fail(error);
  }
}

function connectModes() {
  document.getElementById("toggle-quiz").addEventListener("click", () => {
    setQuiz(!viewer.quizzing);
    keep();
  });
  document.getElementById("example-lecture").addEventListener("click", async () => openLecture(await resource("example.lecture.json")));
  document.getElementById("lecture-file").addEventListener("change", async (event) => {
    const input = /** @type {HTMLInputElement} */ (event.target);
    const [file] = input.files;
    if (!file) return;
    try {
      await openLecture(JSON.parse(await file.text()));
    } catch {
      say(`${file.name} is not JSON`, "bad");
    }
    input.value = "";
  });
}

async function start() {
  document.getElementById("choose").toggleAttribute("open", innerWidth > 900);
  lab = await resource("lab.json");
  controls = new Controls(document.getElementById("controls"), lab, {
    onRecipe: (changed) => {
      const end = viewer.run && viewer.state.t === viewer.run.steps && viewer.run.steps > 0;
      const same = changed.learner === recipe.learner && viewer.run;
      recipe = changed;
      controls.show(recipe, viewer.run?.doc.recipe.data === recipe.data ? viewer.run.doc : null);
      run(end ? Infinity : 0, same ? viewer.state.views : undefined);
    },
    onMessage: (text) => say(text, "bad"),
    onDraw: (fresh) => {
      recipe = { ...recipe, ...fresh, points: [] };
      editor.begin([], ["-1", "1"], BLANK_WINDOW);
      draw([]);
    },
    onWait: (changed) => {
      asked += 1;
      recipe = changed;
    },
  });
  connectModes();
  await open();
  addEventListener("hashchange", () => open().catch((error) => fail(error)));
  requestIdleCallback?.(() => lab.sets.forEach((name) => resource(`${name}.json`).catch(() => {}))); // for working offline
}

// Show what the address says.
async function open() {
  const fragment = location.hash.slice(1);
  const { step, views, quiz, embed, lecture: named, ...settings } = isShortLink(fragment) ? await fromShortLink(fragment) : readState();
  recipe = checkedRecipe(isShortLink(fragment) ? settings : fromAddress(settings, lab.defaults), lab);
  document.body.classList.toggle("embed", embed === "1");
  setQuiz(quiz === "1");
  const link = document.getElementById("open-full");
  link.setAttribute("href", `${location.href.split("#")[0]}#${fragment.replace(/&?embed=1/, "")}`);
  if (named && /^[\w-]+$/.test(named)) {
    await openLecture(await resource(`${named}.lecture.json`));
    return;
  }
  const { t = 0, views: chosen } = viewState({ ...(step === undefined ? {} : { step: String(step) }), ...(views === undefined ? {} : { views }) });
  await openRecipe(t, chosen);
}

async function openRecipe(t, views) {
  controls.show(recipe);
  if (recipe.data === "points") {
    editor.begin(recipe.points, [...new Set(["-1", "1", ...recipe.points.map(([, , name]) => name)])], recipe.points.length ? null : BLANK_WINDOW);
    if (new Set(recipe.points.map(([, , name]) => name)).size < 2) {
      draw(recipe.points);
      return;
    }
  }
  if (recipe.data === "csv" && !recipe.csv) return; // the controls ask for the data
  await run(t, views);
}

start().catch((error) => fail(error));
