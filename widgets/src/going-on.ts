// Where a person goes on whose focus is gone: the buttons of a card that was answered are, and all
// of a view that Jupyter draws anew.
import { useContext, useEffect } from "preact/hooks";
import { MemoryContext, type Memory } from "./memory";
import type { ViewState } from "./protocol";

const CARD = ".sagents-approval";
const OPEN = `${CARD}:not([data-answered])`;
const COMPOSER = ".sagents-composer textarea";

/** What has the focus, as far as it matters when that is gone: the row of a card, or the composer. */
export function noteFocus(memory: Memory, target: Element): void {
  memory.focus = target.closest(CARD)?.parentElement ?? target.closest(COMPOSER);
}

/**
 * Moves the focus that was in a card of `root` to the next one that waits, whenever that comes; until
 * then it is in the row of the call, and when the run is over in the composer. A focus that a person
 * has set anywhere else stays there.
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
      : (find(row, OPEN) ?? find(pane, OPEN) ?? (over ? composer() : null) ?? (lost ? (find(row, `${CARD}, summary`) ?? pane) : null));
    if (!to || to.contains(focused)) return;
    to.focus({ preventScroll: true });
    // From the row, too, it is a way on to the next card.
    memory.focus ??= to;
  });
}
