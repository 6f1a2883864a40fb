// What was said and done, oldest first, with the answer that is being written at the end.
import type { VNode } from "preact";
import { useCallback, useContext, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Button } from "./button";
import { ownersOf, resultsByEntry } from "./calls";
import { ErrorText } from "./error-text";
import { MessageActions, placesOf, type Edited } from "./message-actions";
import { count } from "./format";
import { Icon } from "./icons";
import { fieldsOf, Given } from "./given";
import { useLatestFirst } from "./latest-first";
import { MemoryContext, type Place } from "./memory";
import { Problem } from "./problem";
import { useGoingOn } from "./going-on";
import { QuestionProvider, useQuestion, type Question } from "./question";
import { Retry } from "./retry";
import { Drawn } from "./rich-text";
import { foldsOf } from "./rows";
import { Visible } from "./text-block";
import { LooseCard, statusOfCall, type CallProps } from "./tool-card";
import { Turn, type About } from "./turns";
import { useStore } from "./use-store";
import { newestRun, waitsForThread, wants, type Entry, type Interrupt, type ToolInfo, type ToolResult, type ViewState } from "./protocol";

/** What a message costs beside its text, in characters. */
const MESSAGE = 600;
/** So many messages are laid out together, or none of them: each frame of a scroll goes through all that may be. */
const PART = 16;

const NONE: Entry[] = [];

/** Below a cell the images that a tool has put there too are seen once. */
const besideItsCell = (result?: ToolResult) =>
  result?.images && result.metadata?.shown_in_cell ? { ...result, images: undefined } : result;

type Props = {
  state: ViewState;
  runId?: string;
  /** Whether what waits and has no place in the transcript is shown here. */
  loose?: boolean;
  /** Whether the cell above says the prompt word for word. */
  typed?: boolean;
  /** How many messages a person has sent here: they are shown, wherever was read. */
  sent?: number;
  /** The message that is being said anew. */
  edited?: Edited | null;
  /** Is told which one somebody wants to say anew. */
  onEdit?: (edited: Edited) => void;
};

export function Transcript({ state, runId = "", loose = true, typed = false, sent = 0, edited, onEdit }: Props) {
  const question = useQuestion(state);
  // The run of a view may be of a conversation before this one.
  const past = runId ? state.past : NONE;
  const all = useMemo(() => [...past, ...state.entries], [past, state.entries]);
  const results = useMemo(() => resultsByEntry(all), [all]);
  const owners = useMemo(() => ownersOf(all), [all]);
  const asked = useMemo(() => askedCalls(state.interrupt), [state.interrupt]);
  // History from before this kernel has no sequence numbers, so the place is the key.
  const entries = useMemo(
    () =>
      all
        .map((entry, index) => ({ entry, key: state.earlier + index - past.length }))
        .filter(({ entry }) => !runId || entry.run_id === runId),
    [all, past, state.earlier, runId],
  );
  const about: About = (entry, call) => {
    const mine = owners.get(call.id) === entry;
    const result = results.get(entry)?.[call.id];
    return {
      info: mine ? (asked[call.id] ?? state.tools[call.id]) : undefined,
      // Of a call from before this kernel only its result tells.
      decided: (mine ? state.decided[call.id] : undefined) ?? result?.decision,
      result: runId ? besideItsCell(result) : result,
      over: isOver(state, entry.run_id),
      agent: mine ? state.agents[call.id] : undefined,
    };
  };
  const folds = useMemo(
    () => foldsOf(entries.map(({ entry }) => entry), (entry, call) => statusToFold({ call, ...about(entry, call) })),
    [entries, results, asked, state.tools, state.decided],
  );
  const places = useMemo(() => new Map(entries.map(({ entry, key }) => [entry, key])), [entries]);
  const placeOf = (entry: Entry) => places.get(entry) ?? 0;
  const partial = state.partial && (!runId || state.partial.run_id === runId) ? state.partial : null;
  // An error is the session's, so it is shown once: by the run that failed.
  const failed = !runId || ["error", "failed"].includes(state.runs[runId]?.status ?? "");
  const told = entries.at(-1)?.entry.message.error != null;
  const empty = entries.length === 0 && !partial;
  const from = useLatestFirst(entries.length, (index) => sizeOf(entries[index]!.entry));
  const first = useRef(from).current;
  const prompt = runId ? entries.findIndex(({ entry }) => entry.message.role === "user") : -1;
  const asks = useMemo(() => placesOf(state), [state.status, state.entries]);
  const parts = new Map<number, VNode[]>();
  const add = (place: number, turn: VNode) => {
    const part = Math.floor(place / PART);
    parts.set(part, [...(parts.get(part) ?? []), turn]);
  };
  entries.slice(from).forEach(({ entry, key }, index) => {
    // Results stand in the cards of their calls.
    if (entry.message.role === "tool") return;
    const asksThis = from + index === prompt;
    if (asksThis && typed) return fieldsOf(entry).length > 0 && add(key, <Given key={key} entry={entry} place={key} />);
    add(
      key,
      <Turn
        key={key}
        entry={entry}
        place={key}
        prompt={asksThis}
        about={about}
        folds={folds}
        placeOf={placeOf}
        far={from + index < first}
      />,
    );
    if (!onEdit || entry.message.role !== "user") return;
    const actions = { state, entry, place: asks.get(entry), edited: edited?.entry === entry, onEdit };
    add(key, <MessageActions key={`${key} actions`} {...actions} />);
  });
  const pane = useStickyPane(state, from, sent);
  useGoingOn(pane.ref, state);
  // With the key of the message that it becomes it keeps its place, and all that is on the screen.
  const next = state.earlier + state.entries.length;
  if (partial) add(next, <Turn key={next} place={next} partial={partial} />);
  const placed = (id: string) => owners.has(id) && (!runId || owners.get(id)!.run_id === runId);

  return (
    <div class={`sagents-pane-frame ${pane.away && state.interrupt ? "sagents-aside" : ""}`}>
      <QuestionProvider value={question}>
        <div class="sagents-transcript" role="log" aria-live="off" tabIndex={0} aria-label="Conversation" ref={pane.ref}>
          {!runId && state.earlier > 0 && (
            <Earlier earlier={state.earlier} onArrival={pane.keep} />
          )}
          {empty && !runId && <p class="sagents-empty">Nothing said yet.</p>}
          <Drawn.Provider value={pane.soon}>
            {[...parts].map(([part, turns]) => (
              <div key={part} class="sagents-part">
                {turns}
              </div>
            ))}
          </Drawn.Provider>
          {loose && <LooseQuestion state={state} question={question} placed={placed} />}
          {state.error && failed && !told && (
            <div class="sagents-banner sagents-banner-error" role="alert" data-testid="run-error">
              <Icon name="alert" />
              <Problem text={state.error} />
            </div>
          )}
          {/* In the view of a run it goes on as that one, so that the rest is seen there. */}
          {(!runId || newestRun(state) === runId) && <Retry state={state} runId={runId || undefined} />}
        </div>
      </QuestionProvider>
      {pane.away && (
        <Button class="sagents-to-end" onClick={pane.toEnd}>
          Newest
        </Button>
      )}
    </div>
  );
}

/** How many messages came before those here, and the way to them. */
function Earlier({ earlier, onArrival }: { earlier: number; onArrival: () => void }) {
  const store = useStore();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  if (!store.open) return <p class="sagents-faint sagents-earlier">{count(earlier, "earlier message")} not shown here</p>;
  const read = () => {
    setBusy(true);
    setProblem("");
    store
      .readEarlier(onArrival)
      .catch((error: Error) => setProblem(error.message))
      .finally(() => setBusy(false));
  };
  return (
    <div class="sagents-earlier">
      <Button kind="quiet" data-testid="earlier" disabled={busy} onClick={read}>
        {busy ? "Reading…" : `Show earlier messages (${earlier.toLocaleString("en")})`}
      </Button>
      <ErrorText text={problem} />
    </div>
  );
}

/** A read that has an image to show, or was decided on, is more than a line. */
function statusToFold(known: CallProps): string {
  return known.decided || known.result?.images?.length ? "" : statusOfCall(known);
}

type LooseProps = { state: ViewState; question: Question; placed: (id: string) => boolean };

/** What waits and is no call of a message here: a halt, a sub-agent's call, one of long ago. */
function LooseQuestion({ state: { interrupt }, question, placed }: LooseProps) {
  if (!interrupt) return null;
  const cards = Object.entries(question).filter(([id]) => !placed(id));
  return (
    <>
      {interrupt.message && interrupt.type !== "in_doubt" && !asksItself(interrupt) && !isOfThreads(interrupt) && (
        <p class="sagents-question">
          <Icon name="hand" />
          <Visible text={interrupt.message} />
        </p>
      )}
      {cards.map(([id, asked]) => (
        <LooseCard key={asked.request.digest ?? id} asked={asked} />
      ))}
    </>
  );
}

/** Whether its message is that of a call which other threads are at. */
const isOfThreads = (interrupt: Interrupt) => !!interrupt.action_requests?.some((request) => waitsForThread(interrupt, request));
/** Whether its message is the question of a card. */
const asksItself = ({ message, action_requests = [] }: Interrupt) =>
  action_requests.some(({ arguments: values }) => values?.question === message);

/** All that waits, without the conversation round it. */
export function Waiting({ state }: { state: ViewState }) {
  const question = useQuestion(state);
  const root = useRef<HTMLElement>(null);
  useGoingOn(root, state);
  return (
    <section class="sagents-approvals" aria-label="Approvals" tabIndex={-1} ref={root}>
      <LooseQuestion state={state} question={question} placed={() => false} />
      {!state.interrupt && <p class="sagents-empty">Nothing waits for approval.</p>}
    </section>
  );
}

/** What is known of the calls that wait for a person. */
function askedCalls(interrupt: ViewState["interrupt"]): Record<string, ToolInfo> {
  if (!interrupt) return {};
  const infos = (interrupt.action_requests ?? []).map((request): [string, ToolInfo] => {
    const want = wants(interrupt, request);
    const status = waitsForThread(interrupt, request) ? "running" : want === "approval" ? "interrupted" : want;
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

/** How long nobody has scrolled who reads, in milliseconds. */
const RESTING = 150;
/** How long a view that is drawn takes to settle, in milliseconds. */
const ARRIVAL = 600;
/** For how many frames what scrolls was a reader's hand. In milliseconds a busy page would take a wheel for something else. */
const TOUCH = 30;
const HANDS = ["wheel", "touchmove", "pointerdown", "keydown"];
/** What a place is counted by. */
const BLOCKS = ".sagents-turn:not(.sagents-turn-waiting), .sagents-row:not(.sagents-in-sight), .sagents-md-block, .sagents-code";

const offsetOf = (block: Element, pane: Element) => pane.getBoundingClientRect().top - block.getBoundingClientRect().top;

/** Where a pane is read: by the last block that begins above its top. */
function placeIn(pane: Element): Place | null {
  if (!pane.isConnected) return null;
  const blocks = pane.querySelectorAll(BLOCKS);
  let [from, to] = [0, blocks.length];
  while (to - from > 1) {
    const middle = (from + to) >> 1;
    if (offsetOf(blocks[middle]!, pane) >= 0) from = middle;
    else to = middle;
  }
  const block = blocks[from];
  return block ? { fromLast: blocks.length - from, above: offsetOf(block, pane) } : null;
}

function goTo(pane: Element, { fromLast, above }: Place): void {
  const blocks = pane.querySelectorAll(BLOCKS);
  const block = blocks[blocks.length - fromLast];
  if (block) pane.scrollTop += above - offsetOf(block, pane);
}

/** Keeps the end in sight as long as the reader has not scrolled away from it. */
function useStickyPane(state: ViewState, from: number, sent: number) {
  const ref = useRef<HTMLDivElement>(null);
  const memory = useContext(MemoryContext);
  const stuck = useRef(memory.reading === null);
  // A view that was just drawn may not be on the page yet, and what comes into sight gets its real
  // height only then: until it is settled, or somebody scrolls, it is taken to its place again.
  const arriving = useRef(true);
  const [away, setAway] = useState(!stuck.current);
  // Only this pane scrolls: scrollIntoView would move the notebook under the reader.
  const toEnd = () => {
    if (!ref.current) return;
    stuck.current = true;
    memory.reading = null;
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
  useLayoutEffect(follow, [state.entries, state.partial, state.tools, state.error, state.status]);
  useLayoutEffect(soon, [from]);
  useLayoutEffect(() => {
    if (!sent) return;
    arriving.current = false;
    toEnd();
    // The browser tells of it later than the view may go on in another element, with what was told until then.
    ref.current!.dispatchEvent(new Event("scroll"));
  }, [sent]);
  // What is read stays where it is when more comes before it.
  const kept = useRef<Place | null>(null);
  const keep = () => {
    kept.current = ref.current && placeIn(ref.current);
    stuck.current = false;
    arriving.current = false;
  };
  useLayoutEffect(() => {
    if (kept.current) goTo(ref.current!, kept.current);
    kept.current = null;
  }, [state.earlier]);
  useLayoutEffect(() => {
    const pane = ref.current!;
    const { reading } = memory;
    let arrival: ReturnType<typeof setTimeout> | undefined;
    const arrive = () => {
      if (pane.clientHeight > 0) arrival ??= setTimeout(arrived, ARRIVAL);
      if (reading) goTo(pane, reading);
      else toEnd();
    };
    const isAtEnd = () => pane.scrollHeight - pane.scrollTop - pane.clientHeight < 24;
    // A pane that has room for all of it does not scroll, and is at its end.
    const settle = () => {
      if (!isAtEnd()) return follow();
      stuck.current = true;
      memory.reading = null;
      setAway(false);
    };
    const arrived = () => {
      arriving.current = false;
    };
    let touched = 0;
    let frames = 0;
    const passed = () => {
      touched -= 1;
      frames = touched > 0 ? requestAnimationFrame(passed) : 0;
    };
    const touch = () => {
      arrived();
      touched = TOUCH;
      frames ||= requestAnimationFrame(passed);
    };
    arrive();
    let resting: ReturnType<typeof setTimeout> | undefined;
    let height = pane.scrollHeight;
    const onScroll = () => {
      // Turns off the screen have guessed heights: what moves when they get real ones is not the reader.
      const settling = pane.scrollHeight !== height && touched === 0;
      height = pane.scrollHeight;
      if (arriving.current) return arrive();
      const atEnd = isAtEnd();
      if (!atEnd && settling && stuck.current) return toEnd();
      stuck.current = atEnd;
      setAway(!atEnd);
      clearTimeout(resting);
      // To find the place has much laid out, so it is done when the reader has come to rest.
      if (atEnd) memory.reading = null;
      else resting = setTimeout(() => (memory.reading = placeIn(pane)), RESTING);
    };
    pane.addEventListener("scroll", onScroll, { passive: true });
    // A pane of another width has its end elsewhere.
    const observer = new ResizeObserver(() => (arriving.current ? arrive() : settle()));
    observer.observe(pane);
    for (const hand of HANDS) pane.addEventListener(hand, touch, { passive: true });
    return () => {
      clearTimeout(resting);
      clearTimeout(arrival);
      cancelAnimationFrame(frames);
      for (const hand of HANDS) pane.removeEventListener(hand, touch);
      pane.removeEventListener("scroll", onScroll);
      observer.disconnect();
    };
  }, []);
  return { ref, away, toEnd, soon, keep };
}
