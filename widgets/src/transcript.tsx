// What was said and done, oldest first, with the answer that is being written at the end.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { TurnBoundary } from "./boundary";
import { AssistantTurn, NoteTurn, UserTurn } from "./turns";
import { count } from "./format";
import { Icon } from "./icons";
import { ownersOf, resultsByEntry } from "./calls";
import { wants, type ToolInfo, type ViewState } from "./protocol";

/** Messages that are drawn before the page has its turn. */
const AT_ONCE = 20;

export function Transcript({ state, runId = "" }: { state: ViewState; runId?: string }) {
  const results = useMemo(() => resultsByEntry(state.entries), [state.entries]);
  const owners = useMemo(() => ownersOf(state.entries), [state.entries]);
  const asked = useMemo(() => askedCalls(state.interrupt), [state.interrupt]);
  // History from before this kernel has no sequence numbers, so the place is the key.
  const entries = state.entries
    .map((entry, index) => ({ entry, key: state.earlier + index }))
    .filter(({ entry }) => !runId || entry.run_id === runId);
  const partial = state.partial && (!runId || state.partial.run_id === runId) ? state.partial : null;
  // An error is the session's, so it is shown once: by the run that failed.
  const failed = !runId || ["error", "failed"].includes(state.runs[runId]?.status ?? "");
  const told = entries.at(-1)?.entry.message.error != null;
  const empty = entries.length === 0 && !partial;
  const latest = useLatestFirst(entries.length);
  const turns = entries.slice(-latest).map(({ entry, key }) => {
    const { role } = entry.message;
    // Results stand in the cards of their calls.
    if (role === "tool") return null;
    return (
      <TurnBoundary key={key} role={role} parts={entry.message.parts ?? []} stage="entry">
        {role === "user" ? (
          <UserTurn entry={entry} compact={runId !== ""} />
        ) : role !== "assistant" ? (
          <NoteTurn entry={entry} />
        ) : (
          <AssistantTurn
            entry={entry}
            results={results.get(entry) ?? {}}
            infoOf={(id) => (owners.get(id) === entry ? (asked[id] ?? state.tools[id]) : undefined)}
            over={isOver(state, entry.run_id)}
          />
        )}
      </TurnBoundary>
    );
  });
  const pane = useStickyPane(state, latest);
  if (partial)
    // With the key of the message that it becomes it keeps its place, and all that is on the screen.
    turns.push(
      <TurnBoundary key={state.earlier + state.entries.length} role="assistant" parts={partial.parts} stage="partial">
        <AssistantTurn partial={partial} />
      </TurnBoundary>,
    );

  return (
    <div class="sagents-pane-frame">
      <div class="sagents-transcript" role="log" aria-live="off" tabIndex={0} aria-label="Conversation" ref={pane.ref}>
        {!runId && state.earlier > 0 && (
          <p class="sagents-faint sagents-earlier">{count(state.earlier, "earlier message")} not shown here</p>
        )}
        {empty && !runId && <p class="sagents-empty">Nothing said yet.</p>}
        {turns}
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

/** How many of so many are drawn: the latest at first, a few more each time the page has drawn those. */
function useLatestFirst(all: number): number {
  const [latest, setLatest] = useState(AT_ONCE);
  useEffect(() => {
    if (latest === Infinity) return;
    const next = setTimeout(() => setLatest(latest < all ? latest + AT_ONCE : Infinity));
    return () => clearTimeout(next);
  }, [latest]);
  return latest;
}

/** Keeps the end in sight as long as the reader has not scrolled away from it. */
function useStickyPane(state: ViewState, latest: number) {
  const ref = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  const [away, setAway] = useState(false);
  // Only this pane scrolls: scrollIntoView would move the notebook under the reader.
  const toEnd = () => {
    stuck.current = true;
    ref.current!.scrollTop = ref.current!.scrollHeight;
  };
  useLayoutEffect(() => {
    if (stuck.current) toEnd();
  }, [state.entries, state.partial, state.tools, state.error, latest]);
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
    const observer = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(() => stuck.current && toEnd());
    observer?.observe(pane);
    return () => {
      pane.removeEventListener("scroll", onScroll);
      observer?.disconnect();
    };
  }, []);
  return { ref, away, toEnd };
}
