// Messages: finished ones, and the one that is being written.
import { useMemo, useState } from "preact/hooks";
import { isCall } from "./calls";
import { oneLine } from "./format";
import { Icon } from "./icons";
import { RichText } from "./rich-text";
import { Line } from "./text-block";
import { ToolCard } from "./tool-card";
import type { ContentPart, Entry, Part, Partial, PartialPart, ToolInfo, ToolResult } from "./protocol";

const textOf = (parts: Part[]) => parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");

/** In a run the prompt is in the cell above already, so one line of it is enough. */
export function UserTurn({ entry, compact }: { entry: Entry; compact: boolean }) {
  const [whole, setWhole] = useState(!compact);
  const parts = entry.message.parts ?? [];
  const text = textOf(parts);
  const others = parts.filter((part) => part.type !== "text");
  return (
    <article class="sagents-turn" data-testid="entry" data-role="user">
      <h6 class="sagents-sr">You</h6>
      {compact ? (
        <button
          type="button"
          class={whole ? "sagents-prompt sagents-prompt-whole" : "sagents-prompt"}
          aria-expanded={whole}
          title={whole ? undefined : "Show the whole prompt"}
          onClick={() => setWhole(!whole)}
        >
          {text}
        </button>
      ) : (
        <div class="sagents-bubble">{text}</div>
      )}
      {others.map((part, index) => (
        <OtherPart key={index} part={part} />
      ))}
    </article>
  );
}

type AssistantProps = {
  /** The message, or what there is of it while it is written. */
  entry?: Entry;
  partial?: Partial;
  results?: Record<string, ToolResult>;
  infoOf?: (id: string) => ToolInfo | undefined;
  /** Whether the run of this message has ended, so that nothing of it can be on its way. */
  over?: boolean;
};

export function AssistantTurn({ entry, partial, results = {}, infoOf, over = false }: AssistantProps) {
  const parts: (Part | PartialPart)[] = partial?.parts ?? entry?.message.parts ?? [];
  const calls = (entry?.message.parts ?? []).filter(isCall);
  const live = calls.flatMap((call) => [infoOf?.(call.id), results[call.id]]);
  const last = parts.length - 1;
  // Equal inputs give the very same tree, which is not compared again while others stream.
  return useMemo(
    () => (
      <article
        class="sagents-turn"
        data-testid={partial ? "partial" : "entry"}
        data-role="assistant"
        aria-busy={partial ? "true" : undefined}
      >
        <h6 class="sagents-sr">Agent</h6>
        {last < 0 && partial && <p class="sagents-shimmer">Thinking…</p>}
        {parts.map((part, index) => {
          if (part.type === "text") return part.text.trim() && <RichText key={index} text={part.text} streaming={!!partial} />;
          if (part.type === "thinking")
            return part.text.trim() && <Thinking key={index} text={part.text} streaming={partial && index === last} />;
          if ("index" in part) return <ComingCall key={index} part={part} />;
          if (!isCall(part)) return <OtherPart key={index} part={part} />;
          return <ToolCard key={index} call={part} info={infoOf?.(part.id)} result={results[part.id]} over={over} />;
        })}
        {entry && <StopNote entry={entry} />}
      </article>
    ),
    [entry, partial, over, ...live],
  );
}

/** A call whose arguments are being written. */
function ComingCall({ part }: { part: Extract<PartialPart, { type: "tool_call" }> }) {
  return (
    <div class="sagents-tool sagents-tool-coming">
      <Icon name="busy" turning />
      <span class="sagents-tool-name">
        <Line text={part.name || "tool"} />
      </span>
      <span class="sagents-tool-summary">
        <Line text={oneLine(part.text.slice(-200), 120)} />
      </span>
    </div>
  );
}

export function NoteTurn({ entry }: { entry: Entry }) {
  const { role, parts = [] } = entry.message;
  return (
    <article class="sagents-turn sagents-note" data-testid="entry" data-role={role}>
      <span class="sagents-faint">{role}</span>
      <RichText text={textOf(parts)} />
    </article>
  );
}

export function Thinking({ text, streaming = false }: { text: string; streaming?: boolean }) {
  return (
    <details class="sagents-thinking sagents-fold">
      <summary>
        <Icon name="chevron" />
        <span class={streaming ? "sagents-shimmer" : ""}>{streaming ? "Thinking" : "Thought"}</span>
      </summary>
      <div class="sagents-thinking-text">{text}</div>
    </details>
  );
}

const REASONS: Record<string, string> = {
  max_tokens: "The answer was cut: it reached the limit of output tokens.",
  refusal: "The model declined to answer.",
  context_window: "The answer was cut: the conversation fills the model's context.",
  aborted: "Stopped.",
};

function StopNote({ entry }: { entry: Entry }) {
  const { error, stop_reason = "" } = entry.message;
  const text = error ?? REASONS[stop_reason];
  if (!text) return null;
  const bad = stop_reason !== "aborted";
  return (
    <p class={bad ? "sagents-stop-note sagents-error-text" : "sagents-stop-note sagents-faint"}>
      <Icon name={bad ? "alert" : "stopped"} />
      {text}
    </p>
  );
}

/** Images and documents; what only a provider understands is not for people. */
export function OtherPart({ part }: { part: ContentPart | Part }) {
  switch (part.type) {
    case "image":
      if (part.data && /^image\/(png|jpeg|gif|webp)$/.test(part.mime_type ?? "image/png")) {
        return <img class="sagents-image" alt="" src={`data:${part.mime_type ?? "image/png"};base64,${part.data}`} />;
      }
      return <p class="sagents-faint">Image {part.url ?? part.mime_type ?? ""}</p>;
    case "file":
      return (
        <p class="sagents-attachment">
          <Icon name="file" />
          <Line text={part.name ?? part.url ?? part.mime_type ?? "Document"} />
        </p>
      );
    default:
      return null;
  }
}
