// What a reader has opened and written, and where they have scrolled to. Jupyter draws a view anew when a cell
// ends or its tab comes back, and all of it is to be as it was.
import { createContext } from "preact";
import { useContext, useState } from "preact/hooks";
import type { Draft } from "./edit-form";
import type { Store } from "./store";

export type Memory = {
  /** Whether a fold is open, by its place in the conversation. */
  folds: Map<string, boolean>;
  /** Where the transcript is read; null at its end. */
  reading: Place | null;
  /** What was begun of answers to calls that wait, and not sent, by the digest of what is asked. */
  answers: Map<string, Answer>;
  /** The files that waiting calls would change, as they were, by the id of the call. */
  befores: Map<string, Before>;
  /** What has the focus that is not to be lost. */
  focus: Element | null;
  /** What is being written, and was not sent. */
  draft: string;
};
/** A block, counted from the last, and how far above the top of the pane it begins, in pixels. */
export type Place = { fromLast: number; above: number };
/** Arguments that are being edited, why a call is to be rejected, and an answer in words. */
export type Answer = { draft: Draft | null; reason: string; text: string };
/** A null text is that of no file. */
type Before = { digest: string; text: string | null };

export const newMemory = (): Memory => ({ folds: new Map(), reading: null, answers: new Map(), befores: new Map(), focus: null, draft: "" });

export const MemoryContext = createContext<Memory>(newMemory());

const kept = new WeakMap<Store, Map<string, Memory>>();
/** The last of each view on this page: what was written there goes on where it is drawn for another model. */
const latest = new Map<string, Memory>();

/** What was left of the last view of that name, and is kept of the next. */
export function memoryOf(store: Store, view: string): Memory {
  const views = kept.get(store) ?? new Map<string, Memory>();
  kept.set(store, views);
  const { draft, answers } = latest.get(view) ?? overReload(view);
  const memory = views.get(view) ?? { ...newMemory(), draft, answers };
  views.set(view, memory);
  latest.set(view, memory);
  return memory;
}

type Written = Pick<Memory, "draft" | "answers">;

/** What was written there and not sent when the page was left: it is kept for this tab alone, as long as that is there. */
function overReload(view: string): Written {
  try {
    const [draft, answers] = JSON.parse(sessionStorage.getItem(view)!);
    return { draft: `${draft}`, answers: new Map(answers) };
  } catch {
    return newMemory(); // there is none, or no storage, or another script's
  }
}

addEventListener("pagehide", () => {
  for (const [view, { draft, answers }] of latest) {
    try {
      sessionStorage.removeItem(view);
      if (draft || answers.size) sessionStorage.setItem(view, JSON.stringify([draft, [...answers]]));
    } catch {
      // The storage is full, or there is none: what was written is lost then, as on any page.
    }
  }
});

/** Whether the fold at that place is open, and what its element needs to go on so. */
export function useFold(place: string, initially = false) {
  const { folds } = useContext(MemoryContext);
  const [open, setOpen] = useState(() => folds.get(place) ?? initially);
  const onToggle = ({ currentTarget }: Event & { currentTarget: HTMLDetailsElement }) => {
    folds.set(place, currentTarget.open);
    setOpen(currentTarget.open);
  };
  return [open, { open, onToggle }] as const;
}
