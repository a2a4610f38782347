// The standalone page of a recorded run.

import { byId } from "./dom.js";
import { readState, viewState, writeState } from "./state.js";
import { Viewer } from "./viewer.js";

const doc = JSON.parse(byId("document").textContent ?? "");
const viewer = new Viewer(byId("viewer"), {
  onChange: ({ t, views }) => writeState({ step: t, views: views.join(",") }),
});
viewer.load(doc, viewState(readState()));
addEventListener("hashchange", () => viewer.load(doc, viewState(readState())));
