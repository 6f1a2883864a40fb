// The `_esm` of every widget model. It is small, because each model carries its own copy, and
// idle until a view is shown, because a model that is not ready in 2 s never gets a message.
import type { AnyModel, InitializeProps, RenderProps } from "@anywidget/types";

/** A session model, and what it was told before there was a store to take it: null from then on. */
export type Source = { model: AnyModel; early: unknown[] | null };
type Panel = {
  render(props: { model: AnyModel; source: Source; el: HTMLElement; signal: AbortSignal }): void;
};
type Loaded = { panel: Panel; style: string };
type Bundle = {
  ready: Promise<Loaded>;
  loaded: boolean;
  asked: number;
  offer: (parts: DataView[]) => void;
};
type Page = { bundles: Record<string, Bundle> };

const PATIENCE = 10_000;
const MOST_EARLY = 500;

function bundleOf(version: string): Bundle {
  const page = ((globalThis as { __sagents_nb?: Page }).__sagents_nb ??= { bundles: {} });
  return (page.bundles[version] ??= newBundle(() => delete page.bundles[version]));
}

function newBundle(forget: () => void): Bundle {
  let offer!: (parts: DataView[]) => void;
  const parts = new Promise<DataView[]>((resolve) => (offer = resolve));
  const ready = parts.then(async ([script, style]) => ({ panel: await start(script!), style: new TextDecoder().decode(style!) }));
  const bundle: Bundle = { ready, loaded: false, asked: 0, offer };
  ready.then(() => (bundle.loaded = true), forget);
  return bundle;
}

async function start(script: DataView): Promise<Panel> {
  const blob = new Blob([script as DataView<ArrayBuffer>], { type: "text/javascript" });
  const url = URL.createObjectURL(blob);
  try {
    return await import(url);
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** Adds the style sheet once to what `el` is drawn in: the page, or the shadow root that marimo gives each view. */
function dress(el: HTMLElement, style: string): void {
  const root = el.getRootNode();
  const place = root instanceof ShadowRoot ? root : document.head; // an element that is not shown yet will be in the page
  if ([...place.querySelectorAll("style[data-sagents]")].some((sheet) => sheet.textContent === style)) return;
  const sheet = document.createElement("style");
  sheet.dataset.sagents = "panel";
  sheet.textContent = style;
  place.append(sheet);
}

function say(el: HTMLElement, text: string): HTMLElement {
  const line = document.createElement("div");
  line.textContent = text;
  line.style.cssText = "padding:6px 0;opacity:.75;font:13px/1.5 system-ui,sans-serif";
  line.setAttribute("role", "status");
  el.replaceChildren(line);
  return line;
}

export default () => {
  // The model of `initialize` keeps its listeners as long as the model lives; those of a view's
  // model end with the view. So every view of a session shares this one.
  let own: Source;

  return {
    initialize({ model }: InitializeProps) {
      own = { model, early: [] };
      model.on("msg:custom", (message, buffers) => {
        if (message?.type === "bundle" && buffers?.length === 2) {
          bundleOf(model.get("version")).offer(buffers);
        } else if (message?.type === "snapshot" && own.early) {
          own.early = [message]; // what came before it is in it
        } else {
          own.early = own.early && [...own.early, message].slice(-MOST_EARLY); // a gap is asked about
        }
      });
      return own;
    },

    async render({ model, el, signal, host }: RenderProps) {
      const bundle = bundleOf(model.get("version"));
      const ask = () => {
        if (bundle.loaded || Date.now() - bundle.asked < PATIENCE) return;
        bundle.asked = Date.now();
        model.send({ type: "bundle" });
      };
      ask();
      const late = setTimeout(() => {
        say(el, "The kernel has not sent the panel yet. It may be busy, or it is gone; run the cell again.");
        ask(); // the first time may be lost
      }, PATIENCE);
      signal.addEventListener("abort", () => clearTimeout(late));
      try {
        const reference = model.get("source");
        const source = reference
          ? (await host.getWidget<Source>(reference)).exports
          : own;
        const { panel, style } = await bundle.ready;
        clearTimeout(late);
        if (signal.aborted) return;
        el.replaceChildren();
        dress(el, style);
        panel.render({ model, source, el, signal });
      } catch (error) {
        clearTimeout(late);
        console.error("[sagents_nb]", error);
        say(el, "This view cannot be shown: its session is not in the kernel any more. Run the cell again.");
      }
    },
  };
};
