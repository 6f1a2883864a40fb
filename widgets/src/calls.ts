// Which call belongs to which message. Providers reuse call ids, so an id alone does not say.
import type { Entry, Part, ToolCall, ToolResult } from "./protocol";

export const isCall = (part: Part): part is ToolCall => part.type === "tool_call";
export const isResult = (part: Part): part is ToolResult => part.type === "tool_result";

/** Whether a tool of that name is another agent at work: a sub-agent, or one of a registry. */
export const isAgent = (name: string) => name === "task" || name.startsWith("agent__");

/** The results of each assistant message's calls: of equal ids the last one asked is meant. */
export function resultsByEntry(entries: Entry[]): Map<Entry, Record<string, ToolResult>> {
  const found = new Map<Entry, Record<string, ToolResult>>();
  const asked = new Map<string, Entry>();
  for (const entry of entries) {
    for (const part of entry.message.parts ?? []) {
      if (isCall(part)) asked.set(part.id, entry);
      if (!isResult(part)) continue;
      const owner = asked.get(part.tool_call_id);
      if (owner) found.set(owner, { ...found.get(owner), [part.tool_call_id]: part });
    }
  }
  return found;
}

/** The last message that made a call of that id: the one the live tool state is about. */
export function ownersOf(entries: Entry[]): Map<string, Entry> {
  const calls = entries.flatMap((entry) =>
    (entry.message.parts ?? []).filter(isCall).map((call) => [call.id, entry] as const),
  );
  return new Map(calls);
}
