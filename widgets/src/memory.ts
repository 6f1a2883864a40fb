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

/** What was left of the last view of that name, and is kept of the next. */
export function memoryOf(store: Store, view: string): Memory {
  const views = kept.get(store) ?? new Map<string, Memory>();
  kept.set(store, views);
  const memory = views.get(view) ?? overReloads(`sagents ${view}`);
  views.set(view, memory);
  return memory;
}

/** A memory with what was written and not sent when the page was left: it is kept for this tab alone, as long as that is there. */
function overReloads(place: string): Memory {
  const memory = newMemory();
  try {
    const [draft, answers] = JSON.parse(sessionStorage.getItem(place)!) ?? [""];
    memory.draft = draft;
    memory.answers = new Map(answers);
    const weak = new WeakRef(memory);
    addEventListener("pagehide", () => {
      const left = weak.deref();
      if (left) sessionStorage.setItem(place, JSON.stringify([left.draft, [...left.answers]]));
    });
  } catch {
    // The host has no storage: what was written is lost then, as on any page.
  }
  return memory;
}

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
