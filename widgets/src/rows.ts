// Which parts of a conversation get a row: what only looks folds into one line, and a to-do list
// that moves needs none beside itself.
import { isCall } from "./calls";
import type { Entry, Part, PartialPart, ToolCall } from "./protocol";

/** Tools that look and change nothing. */
const READS = new Set(["ls", "read_file", "search_text", "search", "glob", "grep"]);
export const TODOS = "write_todos";

export const isRead = (name: string) => READS.has(name);

/** A part of a message, with that message. */
export type Member = { entry: Entry; part: Part };
/** For a part that stands in a fold: all of it at its first, null at the others. */
export type Folds = Map<Part, Member[] | null>;

/** Whether a part is none of the reader's business. `status` is that of a call. */
export function isQuiet(part: Part | PartialPart, status: string): boolean {
  // What is no text cannot be drawn, which is not for here to find out.
  if (part.type === "text" || part.type === "thinking") return typeof part.text === "string" && !part.text.trim();
  if (part.type !== "tool_call" || part.name !== TODOS) return false;
  // One that failed, or that somebody is asked about, is not the list that moves.
  return ["completed", "running", "pending"].includes(status);
}

/**
 * The reads that follow each other, over as many messages as it takes, and the thoughts between
 * them. `statusOf` a call; those that are not done stand for themselves.
 */
export function foldsOf(entries: Entry[], statusOf: (entry: Entry, call: ToolCall) => string): Folds {
  const folds: Folds = new Map();
  let run: Member[] = [];
  // Thoughts belong to a fold only if another read follows.
  let thoughts: Member[] = [];
  const end = () => {
    if (run.filter(({ part }) => isCall(part)).length > 1) {
      run.forEach(({ part }, index) => folds.set(part, index === 0 ? run : null));
    }
    run = [];
    thoughts = [];
  };
  for (const entry of entries) {
    const { role, parts = [], error, stop_reason = "" } = entry.message;
    if (role === "tool") continue;
    if (role !== "assistant") {
      end();
      continue;
    }
    for (const part of parts) {
      const status = isCall(part) ? statusOf(entry, part) : "";
      if (isQuiet(part, status)) continue;
      if (isCall(part) && isRead(part.name) && status === "completed") {
        run.push(...thoughts, { entry, part });
        thoughts = [];
      } else if (part.type === "thinking" && run.length > 0) thoughts.push({ entry, part });
      else end();
    }
    // A note stands below such a message.
    if (error || ["max_tokens", "refusal", "context_window", "aborted"].includes(stop_reason)) end();
  }
  end();
  return folds;
}
