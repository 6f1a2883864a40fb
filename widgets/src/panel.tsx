// The entry of the bundle: shows one view of a session in an element.
import type { AnyModel } from "@anywidget/types";
import { render as draw } from "preact";
import { kernelOf } from "./control";
import type { Source } from "./loader";
import { memoryOf } from "./memory";
import { askBy } from "./parts";
import { storeFor } from "./store";
import { drawOnce } from "./succession";
import { View, type ViewName } from "./view";

type Props = { model: AnyModel; source: Source; el: HTMLElement; signal: AbortSignal };

export function render({ model, source, el, signal }: Props): void {
  const store = storeFor(source);
  askBy((message) => store.tell(message));
  const name: ViewName = model.get("view") || "session";
  const runId = model.get("run_id") ?? "";
  // Notebooks of two folders may each have a conversation of that name.
  const memory = memoryOf(store, `sagents ${kernelOf(model)?.id} ${model.get("session_id")} ${name} ${runId}`);
  drawOnce(el, memory, signal, {
    draw(el) {
      const root = el.firstElementChild ?? el.appendChild(document.createElement("div"));
      draw(<View store={store} name={name} runId={runId} memory={memory} model={model} />, root);
    },
    drop,
  });
}

/** Ends what is drawn in the element: that may have come from another one. */
function drop(el: Element): void {
  const root = el.firstElementChild;
  if (!root) return;
  draw(null, root);
  root.remove();
}
