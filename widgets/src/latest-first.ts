// Much that is drawn at once would hold the page up, so it comes in batches, from its end on.
import { useLayoutEffect, useState } from "preact/hooks";

/** What is drawn before the page has its turn, about two screens: characters. */
const FIRST = 8_000;
/** And at once after that: each turn of the page costs as much as drawing some thousands. */
const BATCH = 50_000;

/**
 * From which of `count` things on they are drawn: at first the latest, and before those some more
 * each time the page has had its turn. `sizeOf` one is what it costs, in characters.
 */
export function useLatestFirst(count: number, sizeOf: (index: number) => number): number {
  const before = (from: number, most: number) => {
    let size = 0;
    while (from > 0 && size < most) size += sizeOf(--from);
    return from;
  };
  const [reached, setReached] = useState(() => before(count, FIRST));
  // There may be fewer by now: a conversation that goes on from an earlier message.
  const from = Math.min(reached, count);
  // Not after it was painted: what is drawn between two frames is laid out once.
  useLayoutEffect(() => {
    if (from === 0) return;
    const next = setTimeout(() => setReached(before(from, BATCH)));
    return () => clearTimeout(next);
  }, [from]);
  return from;
}
