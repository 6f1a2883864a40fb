// What was said and done, oldest first, with the answer that is being written at the end.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { AssistantTurn, NoteTurn, UserTurn } from "./turns";
import { PartialTurn } from "./partial";
import { count } from "./format";
import { Icon } from "./icons";
import { ownersOf, resultsByEntry } from "./calls";
import type { ViewState } from "./protocol";

export function Transcript({ state, runId = "" }: { state: ViewState; runId?: string }) {
  const pane = useStickyPane(state);
  const results = useMemo(() => resultsByEntry(state.entries), [state.entries]);
  const owners = useMemo(() => ownersOf(state.entries), [state.entries]);
  const entries = state.entries.filter((entry) => !runId || entry.run_id === runId);
  const partial = state.partial && (!runId || state.partial.run_id === runId) ? state.partial : null;
  // An error is the session's, so it is shown once: by the run that failed.
  const failed = !runId || state.runs[runId]?.status === "error" || state.runs[runId]?.status === "failed";
  const empty = entries.length === 0 && !partial;

  return (
    <div class="sagents-pane-frame">
      <div class="sagents-transcript" role="log" aria-live="off" tabIndex={0} aria-label="Conversation" ref={pane.ref}>
        {!runId && state.earlier > 0 && (
          <p class="sagents-faint sagents-earlier">{count(state.earlier, "earlier message")} not shown here</p>
        )}
        {empty && !runId && <p class="sagents-empty">Nothing said yet.</p>}
        {entries.map((entry) => {
          const { role } = entry.message;
          // Results stand in the cards of their calls.
          if (role === "tool") return null;
          if (role === "user") return <UserTurn key={entry.seq} entry={entry} compact={runId !== ""} />;
          if (role !== "assistant") return <NoteTurn key={entry.seq} entry={entry} />;
          return (
            <AssistantTurn
              key={entry.seq}
              entry={entry}
              results={results.get(entry) ?? {}}
              infoOf={(id) => (owners.get(id) === entry ? state.tools[id] : undefined)}
              over={state.runs[entry.run_id]?.ended != null}
            />
          );
        })}
        {partial && <PartialTurn partial={partial} />}
        {state.error && failed && (
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

/** Keeps the end in sight as long as the reader has not scrolled away from it. */
function useStickyPane(state: ViewState) {
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
  }, [state.entries, state.partial, state.tools, state.error]);
  useLayoutEffect(() => {
    const pane = ref.current!;
    const onScroll = () => {
      stuck.current = pane.scrollHeight - pane.scrollTop - pane.clientHeight < 24;
      setAway(!stuck.current);
    };
    pane.addEventListener("scroll", onScroll, { passive: true });
    // Late layout (fonts, images, cards that open) moves the end without an event of ours.
    const observer = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(() => stuck.current && toEnd());
    observer?.observe(pane);
    return () => {
      pane.removeEventListener("scroll", onScroll);
      observer?.disconnect();
    };
  }, []);
  return { ref, away, toEnd };
}
