// What nobody has scrolled to need not be made ready at once.
import { useEffect, useState } from "preact/hooks";

/** What is made ready while the page has nothing to do, one after another, so that scrolling draws nothing. */
const waiting = new Set<() => void>();

function work() {
  const [next] = waiting;
  if (!next) return;
  waiting.delete(next);
  next();
  if (waiting.size > 0) requestIdleCallback(work);
}

/** What is laid out together with all that stands beside it, and in it. */
const SKIPPED = ".sagents-md-block, pre";

/**
 * Whether what begins `far` off has come within a screen of what is seen of the transcript, or of
 * the window; with `idle` also once the page has had time for it.
 */
export function useSeen(element: { current: Element | null }, far: boolean, idle = false): boolean {
  const [seen, setSeen] = useState(!far || typeof IntersectionObserver === "undefined");
  useEffect(() => {
    const { current } = element;
    if (!current) return;
    // So that the frame in which it comes into sight has less to do: the browser skips it until then.
    if (seen) return void (far && current.querySelectorAll(SKIPPED).forEach((block) => block.getBoundingClientRect()));
    const look: IntersectionObserverCallback = (changes) => setSeen(changes.some((change) => change.isIntersecting));
    const root = current.closest(".sagents-transcript");
    const observer = new IntersectionObserver(look, { root, rootMargin: "100% 0px" });
    observer.observe(current);
    const ready = () => setSeen(true);
    // Safari has no idle callbacks (https://caniuse.com/requestidlecallback).
    if (idle && typeof requestIdleCallback !== "undefined" && waiting.add(ready).size === 1) requestIdleCallback(work);
    return () => {
      observer.disconnect();
      waiting.delete(ready);
    };
  }, [seen]);
  return seen;
}
