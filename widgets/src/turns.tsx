// Messages: finished ones, and the one that is being written.
import { useMemo, useRef, useState } from "preact/hooks";
import { TurnBoundary } from "./boundary";
import { isCall } from "./calls";
import { oneLine } from "./format";
import { Icon } from "./icons";
import { RichText } from "./rich-text";
import { useSeen } from "./seen";
import { Line } from "./text-block";
import { ToolCard } from "./tool-card";
import type { ContentPart, Entry, Part, Partial, PartialPart, ToolInfo, ToolResult } from "./protocol";

const textOf = (parts: Part[]) => parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");

/** In a run the prompt is in the cell above already, so one line of it is enough. */
function UserTurn({ entry, compact }: { entry: Entry; compact: boolean }) {
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

type TurnProps = {
  /** The message, or what there is of it while it is written. */
  entry?: Entry;
  partial?: Partial;
  compact?: boolean;
  results?: Record<string, ToolResult>;
  infoOf?: (id: string) => ToolInfo | undefined;
  /** Whether the run of this message has ended, so that nothing of it can be on its way. */
  over?: boolean;
  /** Whether it begins off the screen: then its text is plain until the reader comes near. */
  far?: boolean;
};

/** A message, or its text as it came where it cannot be drawn. */
export function Turn({ entry, partial, compact = false, results = {}, infoOf, over = false, far }: TurnProps) {
  const role = entry?.message.role ?? "assistant";
  const parts: (Part | PartialPart)[] = partial?.parts ?? entry?.message.parts ?? [];
  const calls = (entry?.message.parts ?? []).filter(isCall);
  const live = calls.flatMap((call) => [infoOf?.(call.id), results[call.id]]);
  // Equal inputs give the very same tree, which is not compared again while others stream.
  return useMemo(
    () => (
      <TurnBoundary role={role} parts={parts} stage={partial ? "partial" : "entry"}>
        {role === "user" ? (
          <UserTurn entry={entry!} compact={compact} />
        ) : role !== "assistant" ? (
          <NoteTurn entry={entry!} />
        ) : (
          <AssistantTurn entry={entry} partial={partial} parts={parts} results={results} infoOf={infoOf} over={over} far={far} />
        )}
      </TurnBoundary>
    ),
    [entry, partial, compact, over, ...live],
  );
}

type AssistantProps = TurnProps & { parts: (Part | PartialPart)[] };

function AssistantTurn({ entry, partial, parts, results = {}, infoOf, over = false, far = false }: AssistantProps) {
  const root = useRef<HTMLElement>(null);
  const near = useSeen(root, far);
  const last = parts.length - 1;
  return (
    <article
      class="sagents-turn"
      data-testid={partial ? "partial" : "entry"}
      data-role="assistant"
      aria-busy={partial ? "true" : undefined}
      ref={root}
    >
      <h6 class="sagents-sr">Agent</h6>
      {last < 0 && partial && <p class="sagents-shimmer">Thinking…</p>}
      {parts.map((part, index) => {
        if (part.type === "text") {
          if (!part.text.trim()) return null;
          if (!near) return <div key={index} class="sagents-far">{part.text}</div>;
          return <RichText key={index} text={part.text} streaming={!!partial} />;
        }
        if (part.type === "thinking")
          return part.text.trim() && <Thinking key={index} text={part.text} streaming={partial && index === last} />;
        if ("index" in part) return <ComingCall key={index} part={part} />;
        if (!isCall(part)) return <OtherPart key={index} part={part} />;
        return <ToolCard key={index} call={part} info={infoOf?.(part.id)} result={results[part.id]} over={over} />;
      })}
      {entry && <StopNote entry={entry} />}
    </article>
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

function NoteTurn({ entry }: { entry: Entry }) {
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
