// A cell of code, put into the notebook below the one that an element is shown in. What a kernel
// offers as the next cell is heard only at the end of a cell, not after a click.
import type { AnyModel } from "@anywidget/types";

/** As much as is needed of the document that JupyterLab's and Notebook 7's widget manager is for. */
type Notebook = { insertCell(index: number, cell: { cell_type: "code"; source: string; metadata: object }): unknown };
type Host = { widget_manager?: { context?: { model?: { sharedModel?: Partial<Notebook> } } } };

/** Puts the cell there; whether this host lets it be done, and the element is shown in a cell of a notebook. */
export function insertCell(model: AnyModel, element: Element, source: string): boolean {
  const notebook = (model as Host).widget_manager?.context?.model?.sharedModel;
  const cell = element.closest<HTMLElement>(".jp-Notebook .jp-Cell");
  const place = Number.parseInt(cell?.dataset.windowedListIndex ?? "", 10);
  if (typeof notebook?.insertCell !== "function" || !(place >= 0)) return false;
  try {
    notebook.insertCell(place + 1, { cell_type: "code", source, metadata: {} });
    return true;
  } catch (error) {
    console.error("[sagents_nb]", error);
    return false;
  }
}
