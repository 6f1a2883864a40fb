// Where a person goes on whose focus is gone: the buttons of a card that was answered are, and all
// of a view that Jupyter draws anew. And how the notebook's own keys are had again.
import { useContext, useEffect } from "preact/hooks";
import { MemoryContext, type Memory } from "./memory";
import type { ViewState } from "./protocol";

const CARD = ".sagents-approval";
const OPEN = `${CARD}:not([data-answered])`;
const COMPOSER = ".sagents-composer textarea";
const PANEL = ".sagents-panel";

/** What has the focus, as far as it matters when that is gone: the row of a card, the composer, *Stop*, or else the panel. */
export function noteFocus(memory: Memory, target: Element): void {
  memory.focus = target.closest(CARD)?.parentElement ?? target.closest(`${COMPOSER}, .sagents-header .sagents-stop, ${PANEL}`);
}

const CELL = ".jp-Cell";

/** Gives the focus to the cell that `panel` is in: the notebook's keys are heard there. */
export const leave = (panel: Element): void => panel.closest<HTMLElement>(CELL)?.focus({ preventScroll: true });

/** A click on the prompt of a cell means that cell, where JupyterLab leaves the focus in the panel. */
export function useWayOut(root: { current: HTMLElement | null }): void {
  useEffect(() => {
    const page = root.current!.ownerDocument;
    const hear = ({ target }: Event) => {
      const panel = root.current!;
      if (panel.contains(page.activeElement) && !panel.contains(target as Node)) leave(target as Element);
    };
    page.addEventListener("click", hear);
    return () => page.removeEventListener("click", hear);
  }, []);
}

/**
 * Moves the focus that was in a card of `root` to the next one that waits, whenever that comes; until
 * then it is in the row of the call, and when the run is over, or was stopped by its button, in the
 * composer. Of a view that was drawn anew without its focus the conversation has it. A focus that a
 * person has set anywhere else stays there.
 */
export function useGoingOn(root: { current: HTMLElement | null }, { status }: ViewState): void {
  const memory = useContext(MemoryContext);
  useEffect(() => {
    const pane = root.current!;
    const from = memory.focus;
    // In another view of the same, or in the composer: it is not gone.
    if (!from || (from.isConnected && !pane.contains(from))) return;
    const focused = (pane.getRootNode() as Document | ShadowRoot).activeElement;
    // Nothing has the focus, which in a shadow root is seen from outside of it.
    const lost = document.activeElement === document.body;
    if (!lost && !from.contains(focused)) return void (memory.focus = null);
    const find = (within: Element | null, what: string) => within?.querySelector<HTMLElement>(what);
    // Of a view that is gone nothing can be focused.
    const row = from.isConnected ? from : null;
    const composer = () => find(pane.closest(".sagents-conversation"), COMPOSER);
    const over = status !== "running" && status !== "interrupted";
    const to = from.matches(COMPOSER)
      ? composer()
      : from.matches(PANEL)
      ? lost && pane
      : (find(row, OPEN) ?? find(pane, OPEN) ?? (over ? composer() : null) ?? (lost ? (find(row, `${CARD}, summary`) ?? pane) : null));
    if (!to || to.contains(focused)) return;
    to.focus({ preventScroll: true });
    // From the row, too, it is a way on to the next card.
    if (!from.matches(PANEL) && memory.focus!.matches(PANEL)) memory.focus = to;
  });
}
