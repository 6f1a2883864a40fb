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

/**
 * Whether what begins `far` off has come within a screen of what is seen of the transcript, or of
 * the window; with `idle` also once the page has had time for it.
 */
export function useSeen(element: { current: Element | null }, far: boolean, idle = false): boolean {
  const [seen, setSeen] = useState(!far || typeof IntersectionObserver === "undefined");
  useEffect(() => {
    if (seen || !element.current) return;
    const look: IntersectionObserverCallback = (changes) => setSeen(changes.some((change) => change.isIntersecting));
    const root = element.current.closest(".sagents-transcript");
    const observer = new IntersectionObserver(look, { root, rootMargin: "100% 0px" });
    observer.observe(element.current);
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
