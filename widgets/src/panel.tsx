// The entry of the bundle: shows one view of a session in an element.
import type { AnyModel } from "@anywidget/types";
import { render as draw } from "preact";
import type { Source } from "./loader";
import { storeFor } from "./store";
import { askThrough } from "./typesetter";
import { View, type ViewName } from "./view";

type Props = { model: AnyModel; source: Source; el: HTMLElement; signal: AbortSignal };

export function render({ model, source, el, signal }: Props): void {
  const store = storeFor(source);
  askThrough(model);
  const root = document.createElement("div");
  el.append(root);
  const show = (name: ViewName) => draw(<View store={store} name={name} runId={model.get("run_id") ?? ""} typed={model.get("typed") ?? false} />, root);
  show(model.get("view") || "session");
  signal.addEventListener("abort", () => {
    draw(null, root);
    root.remove();
  });
}
