// The standalone page of a recorded run.

import { readState, viewState, writeState } from "./state.js";
import { Viewer } from "./viewer.js";

const doc = JSON.parse(document.getElementById("document").textContent);
const viewer = new Viewer(document.getElementById("viewer"), {
  onChange: ({ t, views }) => writeState({ step: t, views: views.join(",") }),
});
viewer.load(doc, viewState(readState()));
addEventListener("hashchange", () => viewer.load(doc, viewState(readState())));
