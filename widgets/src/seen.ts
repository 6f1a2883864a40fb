// What nobody has scrolled to need not be made ready.
import { useEffect, useState } from "preact/hooks";

/** Whether what begins `far` off has come within a screen of what is seen of the transcript, or of the window. */
export function useSeen(element: { current: Element | null }, far: boolean): boolean {
  const [seen, setSeen] = useState(!far || typeof IntersectionObserver === "undefined");
  useEffect(() => {
    if (seen || !element.current) return;
    const look: IntersectionObserverCallback = (changes) => setSeen(changes.some((change) => change.isIntersecting));
    const root = element.current.closest(".sagents-transcript");
    const observer = new IntersectionObserver(look, { root, rootMargin: "100% 0px" });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [seen]);
  return seen;
}
