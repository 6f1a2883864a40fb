// Formulas in a page: set once the typesetter is there, and as they were written until then.
import { formulaOf } from "./formulas";
import { Part } from "./parts";

export type Typesetter = { mathml: (tex: string, display: boolean) => string | null };

/** The page's one, for this version of the panel. */
export const typesetter = new Part<Typesetter>("math");

/** Sets the formulas in `element`, now or when they can be; gives what forgets them. */
export function typeset(element: Element): () => void {
  const marked = [...element.querySelectorAll(".hljs-formula")];
  if (marked.length === 0) return () => {};
  return typesetter.whenThere((found) => marked.forEach((mark) => setOne(mark, found)));
}

function setOne(mark: Element, { mathml }: Typesetter): void {
  const formula = formulaOf(mark.textContent ?? "");
  const html = formula && mathml(formula.tex, formula.display);
  if (!html) return;
  mark.className = formula.display ? "sagents-formula sagents-formula-display" : "sagents-formula";
  mark.innerHTML = html;
  if (formula.display) (mark as HTMLElement).tabIndex = 0;
}
