// The page of the harness: one scene, in a theme and a width of choice.
import * as colouring from "../src/colours";
import { colours } from "../src/highlight";
import { render } from "../src/panel";
import { FakeModel } from "./fake";
import { contents, scenes } from "./scenes";

colours.use(colouring);

const query = new URLSearchParams(location.search);
const root = document.getElementById("root")!;
document.body.dataset.jpThemeLight = String(query.get("theme") !== "dark");
root.style.width = query.has("width") ? `${query.get("width")}px` : "auto";

const scene = scenes[query.get("scene") ?? ""];
if (scene) {
  const view = query.get("view") ?? "session";
  const model = new FakeModel(scene, { view, run_id: view === "run" ? "r1" : "" });
  model.files = contents;
  if (query.has("refuse")) {
    model.answer = (message) =>
      message.type === "decide"
        ? model.receive({ type: "error", id: message.id!, kind: "StaleApproval", message: "This call was decided already; nothing was run." })
        : model.reply(message);
  }
  Object.assign(globalThis, { model });
  render({ model: model.asModel(), source: { model: model.asModel(), early: null }, el: root, signal: new AbortController().signal });
} else {
  for (const name of Object.keys(scenes)) {
    for (const view of ["session", "run"]) {
      const link = document.createElement("a");
      link.href = `?scene=${name}&view=${view}`;
      link.textContent = `${name} · ${view}`;
      link.style.display = "block";
      root.append(link);
    }
  }
}
