// Where a person goes on who has answered a card: its buttons are gone, and the focus with them.
import { useEffect, useRef } from "preact/hooks";
import type { ViewState } from "./protocol";

const CARD = ".sagents-approval";
const OPEN = `${CARD}:not([data-answered])`;

/**
 * Moves the focus that was in a card of `root` to the next one that waits, whenever that comes; until
 * then it is in the row of the call, and when the run is over in the composer. A focus that a person
 * has set anywhere else stays there. Gives what is to be told of each focus in `root`.
 */
export function useGoingOn(root: { current: HTMLElement | null }, { status }: ViewState) {
  /** What the focus was in, or was put on. */
  const from = useRef<Element | null>(null);
  useEffect(() => {
    const pane = root.current!;
    const row = from.current;
    if (!row) return;
    const focused = (pane.getRootNode() as Document | ShadowRoot).activeElement;
    // Nothing has the focus, which in a shadow root is seen from outside of it.
    const lost = document.activeElement === document.body;
    if (!lost && !row.contains(focused)) return void (from.current = null);
    const find = (within: Element | null, what: string) => within?.querySelector<HTMLElement>(what);
    const over = status !== "running" && status !== "interrupted";
    const to =
      find(row, OPEN) ??
      find(pane, OPEN) ??
      (over ? find(pane.closest(".sagents-conversation"), ".sagents-composer textarea") : null) ??
      (lost ? (find(row.isConnected ? row : null, `${CARD}, summary`) ?? pane) : null);
    if (!to || to.contains(focused)) return;
    to.focus({ preventScroll: true });
    if (!to.matches(CARD)) from.current = pane.contains(to) ? to : null;
  });
  return ({ target }: FocusEvent) => {
    from.current = (target as Element).closest(CARD)?.parentElement ?? null;
  };
}
