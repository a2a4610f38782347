"use strict";

// The list of models shows /models. It stores nothing but the token, for this tab; the page of a model uses the same.

const MOST_ROWS = 200;
const by = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");
const count = (value) => (value === null ? "–" : number.format(value));
let token = sessionStorage.getItem("separatrix-token") || "";
let models = [];

function make(tag, text, name) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
}

async function ask(path) {
  const reply = await fetch(path, { headers: token ? { Authorization: `Bearer ${token}` } : {} });
  if (reply.status === 401) by("token-form").hidden = false;
  const content = await reply.json();
  if (!reply.ok) throw new Error(content.error);
  return content;
}

function line(model) {
  const row = make("tr"), name = make("td"), link = make("a", model.name);
  link.href = `models/${model.name}/`;
  name.append(link);
  const error = model.errors === null || !model.examples ? "–" : `${((100 * model.errors) / model.examples).toFixed(1)} %`;
  const state = make("td", model.problem || (model.waiting ? `${number.format(model.waiting)} waiting` : model.open ? "open" : "closed"));
  if (model.problem) state.className = "error";
  row.append(name, make("td", count(model.examples), "n"), make("td", count(model.errors), "n"), make("td", error, "n"));
  row.append(state, make("td", model.used === null ? "–" : new Date(1000 * model.used).toLocaleString()));
  return row;
}

function show() {
  const wanted = by("filter").value.trim().toLowerCase();
  const matching = models.filter((model) => model.name.includes(wanted));
  matching.sort((a, b) => (b.used || 0) - (a.used || 0) || (a.name < b.name ? -1 : 1));
  by("models").hidden = !matching.length;
  by("empty").hidden = models.length > 0;
  by("models").tBodies[0].replaceChildren(...matching.slice(0, MOST_ROWS).map(line));
  const left = matching.length - MOST_ROWS;
  by("rest").hidden = left <= 0 && (matching.length > 0 || !models.length);
  by("rest").textContent = left > 0 ? `and ${number.format(left)} more: those above were used last` : "No name contains this.";
}

async function refresh() {
  try {
    let page = await ask("models");
    const all = [...page.models];
    while (page.next !== null) {
      page = await ask(`models?after=${encodeURIComponent(page.next)}`);
      all.push(...page.models);
    }
    models = all;
    by("token-form").hidden = true;
    by("state").textContent = "live";
    by("state").classList.remove("error");
    const examples = models.reduce((sum, model) => sum + (model.examples || 0), 0);
    by("summary").textContent = `${number.format(page.total)} ${page.total === 1 ? "model" : "models"}, ${number.format(page.open)} open, ${number.format(examples)} examples learned`;
    show();
  } catch (error) {
    by("state").textContent = error.message;
    by("state").classList.add("error");
  }
  setTimeout(refresh, document.hidden ? 30000 : 5000);
}

by("filter").addEventListener("input", show);
by("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = by("token").value;
  sessionStorage.setItem("separatrix-token", token);
});

refresh();
