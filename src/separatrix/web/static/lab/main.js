// The lab: sends a recipe to the server, shows the document that comes back, and keeps the recipe in the address.

import { Controls } from "./controls.js";
import { h, save } from "./dom.js";
import { BLANK_WINDOW, Editor, untrained } from "./editor.js";
import { fileName } from "./exports.js";
import { fromAddress, toAddress } from "./recipe.js";
import { readState, viewState, writeState } from "./state.js";
import { Viewer } from "./viewer.js";
import { count } from "./formatting.js";

const message = document.getElementById("message");
const summary = document.getElementById("summary");
let defaults = null;
let recipe = null;
let pending = null;

function say(text, kind = "") {
  message.textContent = text;
  message.className = kind;
}

async function ask(path, body) {
  const reply = await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal: pending?.signal });
  if (!reply.ok) {
    const problem = await reply.json().catch(() => ({}));
    throw new Error(problem.error ?? `the lab replied with status ${reply.status}`);
  }
  return reply;
}

const extras = [
  h("button", { type: "button", id: "save-page", title: "Save this run as a standalone page", onclick: savePage }, "Page"),
  h("button", { type: "button", id: "copy-link", title: "Copy a link to this state of the lab", onclick: copyLink }, "Copy link"),
];
const viewer = new Viewer(document.getElementById("viewer"), { onChange: keep, extras });
const editor = new Editor(viewer, {
  onPoints: (points) => draw(points),
  onStart: (points, doc) => {
    recipe = { ...recipe, data: "points", points, positive: "", columns: [], bias: doc.bias, tie: doc.tie };
    run(Infinity);
  },
});
let controls = null;

function keep() {
  const address = toAddress(recipe, defaults);
  if (address === null) {
    writeState({ data: recipe.data });
    return;
  }
  const { t, views } = viewer.state;
  writeState({ ...address, step: viewer.run?.steps && t === viewer.run.steps ? "end" : t, views: views.join(",") });
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

// Train, and show step t of the result.
async function run(t, views) {
  pending?.abort();
  pending = new AbortController();
  const mine = pending;
  viewer.stop();
  const waiting = setTimeout(() => say("Running …", "quiet"), 250);
  try {
    const doc = await (await ask("/api/run", recipe)).json();
    if (mine !== pending) return;
    say("");
    show(doc, { t, views });
  } catch (error) {
    if (error.name !== "AbortError" && mine === pending) say(error.message, "bad");
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
  pending?.abort();
  pending = null;
  say(points.length ? "Add a point of another class: a boundary needs two classes." : "");
  show(untrained(points, editor.names), { t: 0 });
}

async function savePage() {
  try {
    const text = await (await ask("/api/page", recipe)).text();
    save(fileName(viewer.run, "html"), text, "text/html");
  } catch (error) {
    say(error.message, "bad");
  }
}

async function copyLink() {
  if (toAddress(recipe, defaults) === null) {
    say("The data are too long for a link: save the page instead.", "bad");
    return;
  }
  try {
    await navigator.clipboard.writeText(location.href);
    say("Link copied.", "quiet");
  } catch {
    say(`Copy this link: ${location.href}`, "quiet");
  }
}

async function start() {
  document.getElementById("choose").open = innerWidth > 900;
  const choices = await (await fetch("/api/choices")).json();
  defaults = choices.defaults;
  controls = new Controls(document.getElementById("controls"), choices, {
    onRecipe: (changed) => {
      const end = viewer.run && viewer.state.t === viewer.run.steps && viewer.run.steps > 0;
      const same = changed.learner === recipe.learner && viewer.run;
      recipe = changed;
      run(end ? Infinity : 0, same ? viewer.state.views : undefined);
    },
    onMessage: (text) => say(text, "bad"),
    onDraw: (fresh) => {
      recipe = { ...recipe, ...fresh, points: [] };
      editor.begin([], ["-1", "1"], BLANK_WINDOW);
      draw([]);
    },
  });
  await open();
  addEventListener("hashchange", open);
}

async function open() {
  const entries = readState();
  recipe = fromAddress(entries, defaults);
  controls.show(recipe);
  const { t = 0, views } = viewState(entries);
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

start().catch((error) => say(error.message, "bad"));
