// Messages: finished ones, and the one that is being written.
import { useMemo, useRef, useState } from "preact/hooks";
import { TurnBoundary } from "./boundary";
import { BareButton } from "./button";
import { isAgent, isCall } from "./calls";
import { CitationsContext, citationsIn, showSource, Sources } from "./citations";
import { Faint, FaintLine } from "./faint";
import { oneLine, withoutTicks } from "./format";
import { Given } from "./given";
import { textOf } from "./history";
import { Icon } from "./icons";
import { useFold } from "./memory";
import { Problem } from "./problem";
import { ReadsFold } from "./reads";
import { RichText } from "./rich-text";
import { isQuiet, type Folds, type Member } from "./rows";
import { useSeen } from "./seen";
import { Line } from "./text-block";
import { isWaiting, statusOfCall, ToolCard, type CallProps } from "./tool-card";
import type { ContentPart, Entry, Part, Partial, PartialPart, ToolCall } from "./protocol";

function UserTurn({ entry, place }: { entry: Entry; place: number | string }) {
  const parts = entry.message.parts ?? [];
  const text = textOf(entry.message);
  const others = parts.filter((part) => part.type !== "text");
  return (
    <article class="sagents-turn" data-testid="entry" data-role="user">
      <h2 class="sagents-sr">You</h2>
      {text && <div class="sagents-bubble">{text}</div>}
      <Given entry={entry} place={place} />
      {others.length > 0 && (
        <div class="sagents-others">
          {others.map((part, index) => (
            <OtherPart key={index} part={part} />
          ))}
        </div>
      )}
    </article>
  );
}

/** In a run the cell above says the prompt, if not word for word, so one line of it is enough. */
function PromptTurn({ entry, place }: { entry: Entry; place: number | string }) {
  const [whole, setWhole] = useState(false);
  const parts = entry.message.parts ?? [];
  return (
    <article class="sagents-turn" data-testid="entry" data-role="user">
      <h2 class="sagents-sr">You</h2>
      <BareButton
        class={whole ? "sagents-prompt sagents-prompt-whole" : "sagents-prompt"}
        aria-expanded={whole}
        title={whole ? undefined : "Show the prompt as it was sent"}
        onClick={() => setWhole(!whole)}
      >
        {textOf(entry.message)}
      </BareButton>
      <Given entry={entry} place={place} />
      {parts.map((part, index) => part.type !== "text" && <OtherPart key={index} part={part} />)}
    </article>
  );
}

type TurnProps = {
  /** The message, or what there is of it while it is written. */
  entry?: Entry;
  partial?: Partial;
  /** Its place in the conversation. */
  place: number | string;
  /** Whether it is what the cell above asked. */
  prompt?: boolean;
  about?: About;
  folds?: Folds;
  /** Where the messages of a fold stand. */
  placeOf?: (entry: Entry) => number | string;
  /** Whether it begins off the screen: then its text is plain until the reader comes near. */
  far?: boolean;
};
/** What is known of a call of a message. */
export type About = (entry: Entry, call: ToolCall) => Omit<CallProps, "call">;

const NO_FOLDS: Folds = new Map();
const UNKNOWN: About = () => ({ over: false });

/** A message, or its text as it came where it cannot be drawn. */
export function Turn({ entry, partial, place, prompt = false, about = UNKNOWN, folds = NO_FOLDS, placeOf = () => place, far }: TurnProps) {
  const role = entry?.message.role ?? "assistant";
  const parts: (Part | PartialPart)[] = partial?.parts ?? entry?.message.parts ?? [];
  const standing = (entry?.message.parts ?? []).flatMap((part) => {
    const fold = folds.get(part);
    return fold === null ? [] : (fold ?? [{ entry: entry!, part }]);
  });
  const live = standing.flatMap(({ entry, part }): unknown[] => (isCall(part) ? Object.values(about(entry, part)) : [part]));
  const folded = (entry?.message.parts ?? []).map((part) => (folds.has(part) ? (folds.get(part)?.length ?? 0) : "")).join();
  // Equal inputs give the very same tree, which is not compared again while others stream.
  return useMemo(
    () => (
      <TurnBoundary role={role} parts={parts} stage={partial ? "partial" : "entry"}>
        {role === "user" ? (
          prompt ? <PromptTurn entry={entry!} place={place} /> : <UserTurn entry={entry!} place={place} />
        ) : role !== "assistant" ? (
          <NoteTurn entry={entry!} />
        ) : (
          <AssistantTurn entry={entry} partial={partial} parts={parts} place={place} about={about} folds={folds} placeOf={placeOf} far={far} />
        )}
      </TurnBoundary>
    ),
    [entry, partial, prompt, folded, live.length, ...live],
  );
}

type AssistantProps = Required<Pick<TurnProps, "place" | "about" | "folds" | "placeOf">> &
  Pick<TurnProps, "entry" | "partial" | "far"> & { parts: (Part | PartialPart)[] };

function AssistantTurn({ entry, partial, parts, place, about, folds, placeOf, far = false }: AssistantProps) {
  const root = useRef<HTMLElement>(null);
  const near = useSeen(root, far, true);
  const found = entry?.message.metadata?.citations;
  const cited = useMemo(() => {
    const citations = citationsIn(found);
    return citations.length > 0 ? { citations, show: (number: number) => showSource(root.current!, number) } : null;
  }, [found]);
  const known = (owner: Entry, call: ToolCall): CallProps => ({ call, ...about(owner, call) });
  const statusOf = (part: Part | PartialPart) =>
    "index" in part ? "running" : isCall(part) ? statusOfCall(known(entry!, part)) : "";
  const at = ({ entry, part }: Member) => `${placeOf(entry)}.${entry.message.parts!.indexOf(part)}`;
  const card = (owner: Entry, call: ToolCall, key: number) => {
    return <ToolCard key={key} {...known(owner, call)} place={at({ entry: owner, part: call })} />;
  };
  const rows = parts.map((part, index) => {
    if (isQuiet(part, statusOf(part))) return null;
    const fold = "index" in part ? undefined : folds.get(part as Part);
    if (fold === null) return null;
    if (fold) {
      return (
        <ReadsFold key={index} members={fold} places={fold.map(at)} place={`${place}.${index}`}>
          {fold.map(({ entry: owner, part }, n) => (isCall(part) ? card(owner, part, n) : <ThoughtOf key={n} part={part} />))}
        </ReadsFold>
      );
    }
    if (part.type === "text") {
      if (!near) return <div key={index} class="sagents-far">{part.text}</div>;
      return <RichText key={index} text={part.text} streaming={!!partial} />;
    }
    if (part.type === "thinking") {
      return <Thinking key={index} text={part.text} place={`${place}.${index}`} streaming={partial && index === parts.length - 1} />;
    }
    if ("index" in part) return <ComingCall key={index} part={part} />;
    return isCall(part) ? card(entry!, part, index) : <OtherPart key={index} part={part} />;
  });
  const note = entry && stopNoteOf(entry);
  const empty = rows.every((row) => row === null);
  // All that it did stands elsewhere: in a fold that begins before it, in the to-do list.
  if (empty && !note && !partial) return null;
  const waits = parts.some((part) => !("index" in part) && isCall(part as Part) && isWaiting(statusOf(part)));
  return (
    <article
      class={waits ? "sagents-turn sagents-turn-waiting" : "sagents-turn"}
      data-testid={partial ? "partial" : "entry"}
      data-role="assistant"
      aria-busy={partial ? "true" : undefined}
      ref={root}
    >
      <h2 class="sagents-sr">Agent</h2>
      {empty && partial && <p class="sagents-shimmer">{parts.length > 0 ? "Planning…" : "Thinking…"}</p>}
      {cited ? <CitationsContext.Provider value={cited}>{rows}</CitationsContext.Provider> : rows}
      {cited && <Sources citations={cited.citations} place={`${place}`} />}
      {note}
    </article>
  );
}

const ThoughtOf = ({ part }: { part: Part }) => (part.type === "thinking" ? <p class="sagents-thinking-text">{part.text}</p> : null);

/** A call whose arguments are being written. */
function ComingCall({ part: { name, text } }: { part: Extract<PartialPart, { type: "tool_call" }> }) {
  const agent = isAgent(name ?? "");
  return (
    <div class={`sagents-tool sagents-tool-coming${agent ? " sagents-agent" : ""}`} data-testid="coming">
      <Icon name="busy" turning />
      <span class="sagents-tool-name">
        <Line text={name || "tool"} />
      </span>
      <span class="sagents-tool-summary">
        <Line text={agent ? oneLine(instructionsIn(text), 120) : oneLine(text.slice(-200), 120)} />
      </span>
    </div>
  );
}

/** As far as they have come and can be read; a quote inside of another text has a backslash before it. */
const INSTRUCTIONS = /"instructions"\s*:\s*("(?:[^"\\]|\\(?:["\\/bfnrt]|u[\da-f]{4}))*)/i;

/** What a sub-agent is to do, of arguments of which only the beginning is there. */
function instructionsIn(json: string): string {
  try {
    return JSON.parse(`${INSTRUCTIONS.exec(json.slice(0, 2_000))?.[1] ?? '"'}"`);
  } catch {
    return "";
  }
}

function NoteTurn({ entry }: { entry: Entry }) {
  const { role } = entry.message;
  return (
    <article class="sagents-turn sagents-note" data-testid="entry" data-role={role}>
      <Faint>{role}</Faint>
      <RichText text={textOf(entry.message)} />
    </article>
  );
}

type ThinkingProps = { text: string; place: string; streaming?: boolean };

/** A thought in a line, which opens. */
function Thinking({ text, place, streaming = false }: ThinkingProps) {
  const [open, fold] = useFold(place);
  return (
    <details class="sagents-thinking sagents-fold" {...fold}>
      <summary>
        <Icon name="chevron" />
        <span class={streaming ? "sagents-shimmer" : ""}>{streaming ? "Thinking" : "Thought"}</span>
        {!open && <span class="sagents-thinking-line">{oneLine(withoutTicks(streaming ? text.slice(-160) : text), 120)}</span>}
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

function stopNoteOf({ message: { error, stop_reason = "" } }: Entry) {
  const text = error ?? REASONS[stop_reason];
  if (!text) return null;
  const bad = stop_reason !== "aborted";
  return (
    <div class={bad ? "sagents-stop-note sagents-error-text" : "sagents-stop-note sagents-faint"}>
      <Icon name={bad ? "alert" : "stopped"} />
      {error ? <Problem text={error} /> : text}
    </div>
  );
}

/** Images and documents; what only a provider understands is not for people. */
export function OtherPart({ part }: { part: ContentPart | Part }) {
  switch (part.type) {
    case "image":
      if (part.data && /^image\/(png|jpeg|gif|webp)$/.test(part.mime_type ?? "image/png")) {
        return <img class="sagents-image" alt="Image" src={`data:${part.mime_type ?? "image/png"};base64,${part.data}`} />;
      }
      return <FaintLine>Image {part.url ?? part.mime_type ?? "image/png"}, not shown here</FaintLine>;
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
