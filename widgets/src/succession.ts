// A view that its host draws anew goes on in the new element: with all that is written, open and
// chosen in it, and with its focus. JupyterLab does so whenever an output changes, and the kernel
// changes it at the end of each run, so that the notebook's file keeps what was said.

/** Says what the jupyterlab-manager puts in the place of a view until the next is there. */
const COMING = "Loading widget...";

/** What each element shows, and with which model: equal views are the same one. */
const shown = new WeakMap<Element, { view: object; draw: Drawing["draw"] }>();
/** Views whose next element is on its way. */
const moving = new WeakSet<object>();

type Drawing = { /** Draws there, or goes on with what is drawn there. */ draw: (el: HTMLElement) => void; /** Ends what is drawn there. */ drop: (el: HTMLElement) => void };

/**
 * Draws a view in `el`, and has it go on in what takes the place of `el`. Where it is about to come
 * from such a one nothing is drawn: all of a long conversation would be, to be thrown away.
 */
export function drawOnce(el: HTMLElement, view: object, signal: AbortSignal, { draw, drop }: Drawing): void {
  signal.addEventListener("abort", () => drop(el));
  if (!moving.has(view)) draw(el);
  shown.set(el, { view, draw });
  // An element that leaves the page loses both.
  const tops = new Map<Element, number>();
  let focused: HTMLElement | null = null;
  el.addEventListener("scroll", ({ target }) => tops.set(target as Element, (target as Element).scrollTop), true);
  el.addEventListener("focusin", ({ target }) => (focused = target as HTMLElement));
  el.addEventListener("focusout", ({ target }) => setTimeout(() => focused === target && (focused = null)));

  let place: Element | null = null;
  // Told before the next key is pressed.
  const changes = new MutationObserver(() => {
    if (el.parentNode) return;
    const next = [...place!.children].find((child) => shown.get(child)?.view === view);
    if (next) {
      moving.delete(view);
      drop(next as HTMLElement);
      next.append(...el.childNodes);
      shown.get(next)!.draw(next as HTMLElement); // the model of `el` tells nothing more
      changes.disconnect();
    } else if (place!.textContent === COMING) {
      place!.replaceChildren(el);
      moving.add(view);
    } else return;
    for (const [pane, top] of tops) pane.scrollTop = top;
    focused?.focus({ preventScroll: true });
  });
  const layout = new ResizeObserver(() => {
    if (!el.parentElement) return;
    if (!el.firstChild) draw(el); // what was to move here did not
    changes.observe((place = el.parentElement), { childList: true });
    layout.disconnect();
  });
  layout.observe(el);
  signal.addEventListener("abort", () => {
    moving.delete(view);
    changes.disconnect();
    layout.disconnect();
  });
}
