// Earlier messages of the conversation, brought into the composer by the arrow keys as in a shell.
import { useMemo, useRef, useState } from "preact/hooks";
import type { Entry, Message } from "./protocol";

export const textOf = ({ parts = [] }: Message): string => parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");

/** What people have said in the conversation, oldest first; what was said twice in a row is there once. */
export function saidIn(entries: Entry[]): string[] {
  const texts = entries.filter(({ message }) => message.role === "user").map(({ message }) => textOf(message));
  return texts.filter((text, place) => text.trim() !== "" && text !== texts[place - 1]);
}

/** The text of the composer, and the way back and forth between it and what was said before. */
export function useHistory(entries: Entry[], draft: string) {
  const said = useMemo(() => saidIn(entries), [entries]);
  const [text, setText] = useState(draft);
  // The place in `said`; the draft stands behind the last of it.
  const place = useRef<number | null>(null);
  // The draft, and what was made of earlier messages, by their place.
  const written = useRef(new Map<number | null, string>([[null, draft]]));
  const write = (next: string) => {
    written.current.set(place.current, next);
    setText(next);
  };
  /** Begins anew, with nothing or with that text. */
  const clear = (draft = "") => {
    place.current = null;
    written.current.clear();
    write(draft);
  };
  /** Goes to the message before or after; whether there is one. */
  const go = (step: -1 | 1): boolean => {
    const from = place.current ?? said.length;
    const to = from + step;
    if (to < 0 || to > said.length) return false;
    place.current = to === said.length ? null : to;
    setText(written.current.get(place.current) ?? said[to] ?? "");
    return true;
  };
  return { text, write, clear, go, recalls: () => place.current !== null };
}
