// Which file of the conversation is read in a view, for all in it that can open one.
import { createContext } from "preact";
import type { FileEntry } from "./protocol";

/** `path` is "" for none; each pick is a new object. */
export type Picked = { path: string };
type Reading = { files: FileEntry[]; picked: Picked; pick: (picked: Picked) => void };

/** Null where a view shows no files. */
export const ReadingContext = createContext<Reading | null>(null);
