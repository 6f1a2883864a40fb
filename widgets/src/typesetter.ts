// Formulas in a page: set once the typesetter is there, and as they were written until then.
import type { AnyModel } from "@anywidget/types";
import { formulaOf } from "./formulas";

export type Typesetter = { mathml: (tex: string, display: boolean) => string | null };

/** The page's one, for this version of the panel. */
let typesetter: Typesetter | null = null;
let asked = 0;
const waiting = new Set<() => void>();
/** A view may be gone before its kernel has answered, so another one asks again. */
const PATIENCE = 10_000;
let ask: () => void = () => {};

/** Asks for the typesetter through that model, when there is a formula: it comes as a message with the file. */
export function askThrough(model: AnyModel): void {
  model.on("msg:custom", (message: { type?: string }, buffers?: DataView[]) => {
    if (message?.type === "math" && buffers?.length === 1) void load(buffers[0]!);
  });
  ask = () => model.send({ type: "math" });
}

async function load(script: DataView): Promise<void> {
  if (typesetter) return;
  let url = "";
  try {
    url = URL.createObjectURL(new Blob([script as DataView<ArrayBuffer>], { type: "text/javascript" }));
    use(await import(/* @vite-ignore */ url));
  } catch (error) {
    console.error("[sagents_nb]", error); // a page that forbids it shows what was written
  } finally {
    URL.revokeObjectURL?.(url);
  }
}

/** Sets formulas with that from now on, and those that wait. */
export function use(found: Typesetter): void {
  typesetter = found;
  for (const set of waiting) set();
  waiting.clear();
}

/** Sets the formulas in `element`, now or when they can be; gives what forgets them. */
export function typeset(element: Element): () => void {
  const marked = [...element.querySelectorAll(".hljs-formula")];
  if (marked.length === 0) return () => {};
  const set = () => marked.forEach((mark) => setOne(mark, typesetter!));
  if (typesetter) {
    set();
    return () => {};
  }
  if (Date.now() - asked > PATIENCE) {
    asked = Date.now();
    ask();
  }
  waiting.add(set);
  return () => void waiting.delete(set);
}

function setOne(mark: Element, { mathml }: Typesetter): void {
  const formula = formulaOf(mark.textContent ?? "");
  const html = formula && mathml(formula.tex, formula.display);
  if (!html) return;
  mark.className = formula.display ? "sagents-formula sagents-formula-display" : "sagents-formula";
  mark.innerHTML = html;
  if (formula.display) (mark as HTMLElement).tabIndex = 0;
}
