// What was said and done, oldest first, with the answer that is being written at the end.
import { useCallback, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Turn } from "./turns";
import { count } from "./format";
import { Icon } from "./icons";
import { ownersOf, resultsByEntry } from "./calls";
import { useLatestFirst } from "./latest-first";
import { wants, type Entry, type ToolInfo, type ViewState } from "./protocol";
import { Drawn } from "./rich-text";

/** What a message costs beside its text, in characters. */
const MESSAGE = 600;

const NONE: Entry[] = [];

export function Transcript({ state, runId = "" }: { state: ViewState; runId?: string }) {
  // The run of a view may be of a conversation before this one.
  const past = runId ? state.past : NONE;
  const all = useMemo(() => [...past, ...state.entries], [past, state.entries]);
  const results = useMemo(() => resultsByEntry(all), [all]);
  const owners = useMemo(() => ownersOf(all), [all]);
  const asked = useMemo(() => askedCalls(state.interrupt), [state.interrupt]);
  // History from before this kernel has no sequence numbers, so the place is the key.
  const entries = all
    .map((entry, index) => ({ entry, key: state.earlier + index - past.length }))
    .filter(({ entry }) => !runId || entry.run_id === runId);
  const partial = state.partial && (!runId || state.partial.run_id === runId) ? state.partial : null;
  // An error is the session's, so it is shown once: by the run that failed.
  const failed = !runId || ["error", "failed"].includes(state.runs[runId]?.status ?? "");
  const told = entries.at(-1)?.entry.message.error != null;
  const empty = entries.length === 0 && !partial;
  const from = useLatestFirst(entries.length, (index) => sizeOf(entries[index]!.entry));
  const first = useRef(from).current;
  const turns = entries.slice(from).map(({ entry, key }, index) => {
    // Results stand in the cards of their calls.
    if (entry.message.role === "tool") return null;
    return (
      <Turn
        key={key}
        entry={entry}
        compact={runId !== ""}
        results={results.get(entry)}
        infoOf={(id) => (owners.get(id) === entry ? (asked[id] ?? state.tools[id]) : undefined)}
        over={isOver(state, entry.run_id)}
        far={from + index < first}
      />
    );
  });
  const pane = useStickyPane(state, from);
  // With the key of the message that it becomes it keeps its place, and all that is on the screen.
  if (partial) turns.push(<Turn key={state.earlier + state.entries.length} partial={partial} />);

  return (
    <div class="sagents-pane-frame">
      <div class="sagents-transcript" role="log" aria-live="off" tabIndex={0} aria-label="Conversation" ref={pane.ref}>
        {!runId && state.earlier > 0 && (
          <p class="sagents-faint sagents-earlier">{count(state.earlier, "earlier message")} not shown here</p>
        )}
        {empty && !runId && <p class="sagents-empty">Nothing said yet.</p>}
        <Drawn.Provider value={pane.soon}>{turns}</Drawn.Provider>
        {state.error && failed && !told && (
          <div class="sagents-banner sagents-banner-error" role="alert" data-testid="run-error">
            <Icon name="alert" />
            <div>{state.error}</div>
          </div>
        )}
      </div>
      {pane.away && (
        <button type="button" class="sagents-button sagents-to-end" onClick={pane.toEnd}>
          Newest
        </button>
      )}
    </div>
  );
}

/** What is known of the calls that wait for a person. */
function askedCalls(interrupt: ViewState["interrupt"]): Record<string, ToolInfo> {
  if (!interrupt) return {};
  const infos = (interrupt.action_requests ?? []).map((request): [string, ToolInfo] => {
    const want = wants(interrupt, request);
    const status = want === "approval" ? "interrupted" : want;
    return [request.tool_call_id, { name: request.tool_name, status, display_text: request.display_text ?? null }];
  });
  return Object.fromEntries(infos);
}

/** Whether nothing of the run can be on its way: one that asks goes on after the answer. */
function isOver(state: ViewState, runId: string): boolean {
  if (state.status === "closed") return true;
  const run = state.runs[runId];
  return run?.ended != null && !(run.status === "interrupted" && state.interrupt);
}

function sizeOf({ message: { role, parts = [] } }: Entry): number {
  if (role === "tool") return 0;
  return parts.reduce((sum, part) => sum + (part.type === "text" ? part.text.length : MESSAGE), MESSAGE);
}

/** Keeps the end in sight as long as the reader has not scrolled away from it. */
function useStickyPane(state: ViewState, from: number) {
  const ref = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  const [away, setAway] = useState(false);
  // Only this pane scrolls: scrollIntoView would move the notebook under the reader.
  const toEnd = () => {
    if (!ref.current) return;
    stuck.current = true;
    ref.current.scrollTop = ref.current.scrollHeight;
  };
  const follow = useCallback(() => {
    if (stuck.current) toEnd();
  }, []);
  // To ask for the end has all be laid out, so what is drawn in batches asks once a frame.
  const frame = useRef(0);
  const soon = useCallback(() => {
    frame.current ||= requestAnimationFrame(() => {
      frame.current = 0;
      follow();
    });
  }, []);
  useLayoutEffect(follow, [state.entries, state.partial, state.tools, state.error]);
  useLayoutEffect(soon, [from]);
  useLayoutEffect(() => {
    const pane = ref.current!;
    let height = pane.scrollHeight;
    const onScroll = () => {
      // Turns off the screen have guessed heights: what moves when they get real ones is not the reader.
      const settling = pane.scrollHeight !== height;
      height = pane.scrollHeight;
      const atEnd = height - pane.scrollTop - pane.clientHeight < 24;
      if (!atEnd && settling && stuck.current) return toEnd();
      stuck.current = atEnd;
      setAway(!atEnd);
    };
    pane.addEventListener("scroll", onScroll, { passive: true });
    // A pane of another width has its end elsewhere.
    const observer = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(follow);
    observer?.observe(pane);
    return () => {
      pane.removeEventListener("scroll", onScroll);
      observer?.disconnect();
    };
  }, []);
  return { ref, away, toEnd, soon };
}
