"use strict";

// The status page shows /stats, /ledger and /explain. It stores nothing but the token, for this tab.

const by = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");
const percent = (share) => (share === null || share === undefined ? "–" : `${(100 * share).toFixed(share < 0.1 ? 2 : 1)} %`);
let token = sessionStorage.getItem("separatrix-token") || "";
let input = "features";
let shownMistakes = "";
let shownState = "";

function make(tag, text, name) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
}

function draw(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

async function ask(path, body) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const reply = await fetch(path, { method: body === undefined ? "GET" : "POST", headers, body: body && JSON.stringify(body) });
  if (reply.status === 401) by("token-form").hidden = false;
  const content = await reply.json();
  if (!reply.ok) throw new Error(content.error);
  return content;
}

function chart(stats) {
  const svg = by("chart");
  svg.replaceChildren();
  by("empty").hidden = stats.windows.length > 0;
  svg.classList.toggle("empty", !stats.windows.length);
  if (!stats.windows.length) return;
  const [left, right, top, bottom] = [64, 632, 14, 190];
  const highest = Math.max(0.01, ...stats.windows.map((w) => w.error));
  const step = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5].find((s) => highest / s <= 5) || 0.5;
  const most = Math.ceil(highest / step) * step;
  const x = (n) => left + ((right - left) * n) / stats.examples;
  const y = (share) => bottom - ((bottom - top) * share) / most;
  for (let share = 0; share <= most + 1e-9; share += step) {
    svg.append(draw("line", { class: "grid", x1: left, x2: right, y1: y(share), y2: y(share) }));
    const percentage = `${+(100 * share).toFixed(1)} %`;
    svg.append(draw("text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, percentage));
  }
  const points = stats.windows.map((w) => [x((w.from - 1 + w.to) / 2), y(w.error)]);
  const path = points.map((p) => p.map((v) => v.toFixed(1)).join(",")).join(" L");
  const ends = [points[0][0], points[points.length - 1][0]];
  svg.append(draw("path", { class: "area", d: `M${ends[0]},${bottom} L${path} L${ends[1]},${bottom} Z` }));
  svg.append(draw("path", { class: "line", d: `M${path}` }));
  const last = points[points.length - 1];
  svg.append(draw("circle", { class: "dot", cx: last[0], cy: last[1], r: 4 }));
  svg.append(draw("text", { x: left, y: 212 }, "example 1"));
  svg.append(draw("text", { x: right, y: 212, "text-anchor": "end" }, number.format(stats.examples)));
  const width = stats.windows[0].to - stats.windows[0].from + 1;
  by("window").textContent = `Windows of ${number.format(width)} examples.`;
}

function classes(stats) {
  by("classes").hidden = !stats.classes.length;
  const rows = [...stats.classes].sort((a, b) => b.examples - a.examples).slice(0, 20).map((c) => {
    const row = make("tr");
    row.append(make("td", c.class), make("td", number.format(c.examples), "n"));
    row.append(make("td", number.format(c.errors), "n"), make("td", percent(c.error), "n"));
    return row;
  });
  by("classes").tBodies[0].replaceChildren(...rows);
}

function sum(heads, rows, most) {
  const table = make("table", undefined, `terms of-${heads.length}`);
  const line = (cells, kind) => {
    const row = make("tr");
    row.append(...cells.map((cell, k) => make(kind, cell, k ? "n" : "")));
    table.append(row);
  };
  line(heads, "th");
  for (const row of rows.slice(0, most)) line(row, "td");
  const rest = rows.length - most;
  if (rest > 0) table.append(make("caption", `and ${rest} more`, "quiet"));
  return table;
}

// The score as a sum over features; if the model has several columns, some with many features, also as a sum over columns.
function terms(explanation, most) {
  const short = (text) => (text.length > 40 ? `${text.slice(0, 39)}…` : text);
  const written = (value) => (value === null ? "" : short(String(value)));
  const rounded = (value) => String(+value.toPrecision(4));
  const scrolling = make("div", undefined, "scroll");
  const columns = explanation.columns || [];
  if (columns.filter((part) => part.column !== "BIAS").length > 1 && columns.length < explanation.terms.length) {
    const parts = columns.map((part) => [part.column, written(part.value), rounded(part.product)]);
    scrolling.append(sum(["column", "value", "contribution"], parts, most));
  }
  const all = explanation.terms.map((term) => [term.name, ...[term.value, term.weight, term.product].map(rounded)]);
  scrolling.append(sum(["feature", "value", "weight", "value × weight"], all, most));
  return scrolling;
}

const sourceOf = (entry) => ["text", "features", "row", "vector"].map((name) => entry[name]).find((value) => value !== undefined);

function written(entry) {
  const source = sourceOf(entry);
  if (source === undefined) return "";
  const text = typeof source === "string" ? source : JSON.stringify(source);
  const most = entry.vector === undefined ? 400 : 40;
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

function regression(r) {
  const item = make("li");
  const cause = r.by.mistake ? `mistake ${number.format(r.by.mistake)}` : r.by.undone ? `the undo of mistake ${number.format(r.by.undone)}` : "no single correction";
  const since = new Date(1000 * r.since).toLocaleString();
  item.append(make("div", `example ${number.format(r.example)} should be ${r.label}, is ${r.prediction} · broken by ${cause} · since ${since}`, "quiet"));
  item.append(make("div", written(r), "given"));
  return item;
}

async function regressions() {
  const page = await ask("regressions");
  by("pins").hidden = !page.pinned.length;
  const broken = page.regressions.length;
  by("pinned").textContent = `${number.format(page.pinned.length)} pinned examples, ${broken ? `${number.format(broken)} of them predicted wrongly` : "all predicted right"}.`;
  by("regressions").replaceChildren(...page.regressions.slice(0, 20).map(regression));
}

function mistake(m) {
  const item = make("li", undefined, m.undone ? "undone" : "");
  const when = new Date(1000 * m.time).toLocaleString();
  const moved = [m.raised !== null && `should be ${m.raised}`, m.lowered !== null && `not ${m.lowered}`].filter(Boolean).join(", ");
  item.append(make("div", `${moved} · example ${number.format(m.example)} · ${when}`, "quiet"));
  item.append(make("div", written(m), "given"));
  const why = make("button", "explain the current prediction", "plain");
  why.type = "button";
  why.addEventListener("click", async () => {
    try {
      const explanation = await ask("explain", { [input]: sourceOf(m) });
      why.replaceWith(make("div", `${explanation.prediction}, score ${+Math.abs(explanation.score).toPrecision(4)}`), terms(explanation, 10));
    } catch (error) { why.replaceWith(make("div", error.message, "error")); }
  });
  if (sourceOf(m) !== undefined) item.append(why);
  return item;
}

async function mistakes(before) {
  const page = await ask(`ledger?limit=10${before ? `&before=${before}` : ""}`);
  const items = page.mistakes.map(mistake);
  if (before) by("mistakes").append(...items);
  else by("mistakes").replaceChildren(...items);
  by("no-mistakes").hidden = page.total > 0;
  by("more").hidden = page.next === null;
  by("more").onclick = () => mistakes(page.next);
}

const SAMPLES = { features: '{"free": 1, "money": 2}', text: "free entry: call now", row: '{"age": 37, "job": "cook"}', vector: "[0.25, -0.5]" };

async function refresh() {
  try {
    const stats = await ask("stats");
    by("token-form").hidden = true;
    by("state").textContent = stats.waiting ? `${stats.waiting} requests waiting` : "live";
    by("state").classList.remove("error");
    by("learner").textContent = stats.learner;
    for (const name of ["examples", "errors", "features", "forgotten"]) by(name).textContent = number.format(stats[name]);
    by("forgotten-figure").hidden = !stats.forgotten;
    by("error").textContent = percent(stats.error);
    by("recent").textContent = percent(stats.drift.recent);
    by("drift").hidden = !stats.drift.drifting;
    by("drift").textContent = `Drift: the error has risen to ${percent(stats.drift.recent)} in the last ${number.format(stats.drift.examples)} examples, from ${percent(stats.drift.before)} before.`;
    by("runs").hidden = !stats.in_runs;
    input = stats.input;
    by("example-label").textContent = { features: "Features, as JSON", text: "A text", row: "A table row, as JSON", vector: "A vector, as JSON" }[input];
    by("example").placeholder = SAMPLES[input];
    chart(stats);
    classes(stats);
    const state = `${stats.commits} ${stats.forgotten}`; // forgetting changes what earlier commits have learned
    if (state !== shownState) {
      await regressions();
      shownState = state;
    }
    const mark = `${stats.mistakes} ${stats.undone} ${stats.forgotten}`;
    if (mark !== shownMistakes) {
      await mistakes();
      shownMistakes = mark;
    }
  } catch (error) {
    by("state").textContent = error.message;
    by("state").classList.add("error");
  }
  setTimeout(refresh, document.hidden ? 10000 : 2000);
}

by("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = by("token").value;
  sessionStorage.setItem("separatrix-token", token);
});

by("try").addEventListener("submit", async (event) => {
  event.preventDefault();
  const answer = by("answer");
  try {
    const written = by("example").value || SAMPLES[input];
    const explanation = await ask("explain", { [input]: input === "text" ? written : JSON.parse(written) });
    answer.replaceChildren(make("span", explanation.prediction === null ? "nothing was learned yet" : explanation.prediction, "label"));
    if (explanation.terms.length) answer.append(make("span", ` score ${+Math.abs(explanation.score).toPrecision(4)}`, "quiet"), terms(explanation, 15));
  } catch (error) {
    answer.replaceChildren(make("span", error instanceof SyntaxError ? "This is not valid JSON." : error.message, "error"));
  }
});

refresh();
