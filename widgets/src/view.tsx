// Which parts a view is made of.
import type { AnyModel } from "@anywidget/types";
import type { ComponentChildren, HTMLAttributes } from "preact";
import { useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Boundary } from "./boundary";
import { BareButton } from "./button";
import { Composer } from "./composer";
import { Files, numberOf } from "./files";
import { leave, noteFocus, useWayOut } from "./going-on";
import { givenName, Header } from "./header";
import { MemoryContext, type Memory } from "./memory";
import type { Edited } from "./message-actions";
import { headline } from "./question";
import { Queue } from "./queue";
import { ReadingContext, type Picked } from "./reading";
import { statusOf } from "./status";
import { spelledOut } from "./visible";
import { doneIn, Todos, todosOf } from "./todos";
import { Transcript, Waiting } from "./transcript";
import { StoreContext, useStore, useStoreState } from "./use-store";
import { askedOfPeople, entriesOf, newestRun, undecided, type ViewState } from "./protocol";
import type { Store } from "./store";

export type ViewName = "session" | "run" | "chat" | "todos" | "files" | "approvals";

/** From this width on, todos and files stand beside the conversation. */
const WIDE = 720;
/** One Escape is easily pressed by mistake: a second within this time stops the run. */
const ESCAPE_TWICE = 2_000;

/** Of the view model, what it says of its cell. */
export type Traits = Pick<AnyModel, "get" | "on" | "off">;

type ViewProps = {
  store: Store;
  name: ViewName;
  runId: string;
  memory: Memory;
  model: Traits;
};

export function View({ store, name, runId, memory, model }: ViewProps) {
  const state = useStoreState(store);
  const waiting = useWaiting(model);
  const root = useRef<HTMLDivElement>(null);
  const wide = useWidth(root) >= WIDE;
  useWayOut(root);
  const status = statusOf(state, store.open, name === "run" ? runId : "");

  const [armed, setArmed] = useState(false);
  const [picked, pick] = useState<Picked>({ path: "" });
  const files = name === "chat" ? undefined : state?.files;
  const reading = useMemo(() => files && { files, picked, pick }, [files, picked]);

  const onKeyDown = (event: KeyboardEvent) => {
    // Notebook shortcuts must not see what is typed here (the attribute below is for JupyterLab).
    event.stopPropagation();
    // What closes a form or a list, or ends an input method's word, is no wish to stop the run.
    if (event.key !== "Escape" || event.repeat || event.defaultPrevented || event.isComposing) return;
    if (!status.active || !store.open) return leave(root.current!);
    event.preventDefault();
    setArmed(!armed);
    if (armed) store.request("cancel", { run_id: name === "run" ? runId : undefined }).catch(() => {});
  };
  useEffect(() => {
    if (!armed) return;
    const timer = setTimeout(() => setArmed(false), ESCAPE_TWICE);
    return () => clearTimeout(timer);
  }, [armed]);

  return (
    <StoreContext.Provider value={store}>
      <MemoryContext.Provider value={memory}>
        <div
          ref={root}
          class={`sagents-panel sagents-view-${name}`}
          data-testid="sagents-panel"
          data-view={name}
          data-heard-while-busy={store.transport.heardWhileBusy}
          data-lm-suppress-shortcuts="true"
          onKeyDown={onKeyDown}
          onFocusIn={({ target }) => noteFocus(memory, target as Element)}
        >
          <div class="sagents-sr" role="status">
            {status.label}
          </div>
          {/* Announced as soon as there is one; the card itself is too long to be read out. */}
          <div class="sagents-sr" role="alert">
            {state && ASKS.has(name) && question(state)}
          </div>
          {name === "run" || name === "chat" || name === "session" ? (
            <Header state={state} status={status} view={name} runId={runId} armed={armed} />
          ) : null}
          {!state ? (
            <p class="sagents-empty">{store.open ? "Connecting to the session…" : "This session is closed."}</p>
          ) : (
            <ReadingContext.Provider value={reading ?? null}>
              <Body state={state} name={name} runId={runId} typed={model.get("typed") ?? false} wide={wide} />
            </ReadingContext.Provider>
          )}
          {status.active && (waiting > 1 || (waiting === 1 && status.name === "interrupted")) && (
            <p class="sagents-lost" role="status" data-testid="behind">
              {waiting > 1
                ? `This cell was run again: when this run has ended, it sends its message ${waiting > 2 ? `${waiting - 1} more times` : "once more"}. Stop drops that, too.`
                : "Cells that are run now wait for this answer."}
            </p>
          )}
          {store.silent && (
            <p class="sagents-lost" role="status" data-testid="silent">
              {store.transport.silent}
            </p>
          )}
          {state && store.lost && status.name === "closed" && <Lost id={state.kept ? givenName(state.session_id) : ""} />}
        </div>
      </MemoryContext.Provider>
    </StoreContext.Provider>
  );
}

const ASKS = new Set<ViewName>(["session", "run", "chat", "approvals"]);

/** For those who hear the page: what is asked of them. */
function question(state: ViewState): string {
  const { interrupt } = state;
  if (!interrupt) return "";
  const names = askedOfPeople(state).map((request) => spelledOut(request.tool_name));
  if (names.length > 0) return `${headline(state, interrupt)}: ${names.join(", ")}`;
  return undecided(state).length > 0 ? "" : (interrupt.message ?? "");
}

/** What a conversation without a kernel needs: a kept one goes on in the next. */
function Lost({ id }: { id: string }) {
  const { transport } = useStore();
  const root = useRef<HTMLParagraphElement>(null);
  const [below, setBelow] = useState(false);
  const offer = () => setBelow(transport.insertCell(root.current!, `%load_ext sagents_nb\n%agent load ${id}`));
  return (
    <p class="sagents-lost" role="status" data-testid="lost" ref={root}>
      The kernel of this panel has ended.
      {id && (
        <>
          {" "}
          <code>%load_ext sagents_nb</code> and <code>%agent load {id}</code> go on with what was kept.{" "}
          {below ? (
            "They are in the cell below."
          ) : (
            <BareButton class="sagents-link" onClick={offer}>
              Put them in a cell
            </BareButton>
          )}
        </>
      )}
    </p>
  );
}

type BodyProps = { state: ViewState; name: ViewName; runId: string; typed: boolean; wide: boolean };

function Body({ state, name, runId, typed, wide }: BodyProps) {
  switch (name) {
    case "session":
      return <SessionBody state={state} wide={wide} />;
    case "run":
      return <RunBody state={state} runId={runId} typed={typed} />;
    case "chat":
      return <Conversation state={state} />;
    case "todos":
      return <Todos todos={todosOf(state)} status={state.status} />;
    case "files":
      return <Files files={state.files} />;
    case "approvals":
      return <Waiting state={state} />;
  }
}

const UNSHOWN = <p class="sagents-empty">This conversation cannot be shown.</p>;

function Conversation({ state, ...tab }: { state: ViewState } & HTMLAttributes<HTMLDivElement>) {
  const [edited, setEdited] = useState<Edited | null>(null);
  const [sent, setSent] = useState(0);
  return (
    <div class="sagents-conversation" {...tab}>
      <Boundary instead={UNSHOWN}>
        <Transcript state={state} sent={sent} edited={edited} onEdit={setEdited} />
      </Boundary>
      <Composer state={state} edited={edited} onEdited={() => setEdited(null)} onSent={() => setSent(sent + 1)} />
    </div>
  );
}

/** A page has one bundle and many panels, whose ids differ. */
let made = 0;

function SessionBody({ state, wide }: { state: ViewState; wide: boolean }) {
  const [chosen, setTab] = useState("chat");
  const { picked } = useContext(ReadingContext)!;
  const [id] = useState(() => `sagents-${++made}`);
  const todos = todosOf(state);
  const files = useEver(state.files.length > 0);
  const side = todos.length > 0 || files;
  // Where there are tabs, what is read is in one of them.
  useEffect(() => {
    if (picked.path) setTab("files");
  }, [picked]);
  const tabs: [string, string, ComponentChildren?][] = [["chat", "Chat"]];
  if (todos.length > 0) tabs.push(["todos", `Todos ${todos.length}`, <Todos todos={todos} status={state.status} />]);
  if (files) tabs.push(["files", `Files ${numberOf(state.files)}`, <Files files={state.files} />]);
  const tab = tabs.some(([name]) => name === chosen) ? chosen : "chat";
  // As https://www.w3.org/WAI/ARIA/apg/patterns/tabs says: one of them is reached by Tab, the others by arrows.
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const place = (tabs.findIndex(([name]) => name === tab) + step + tabs.length) % tabs.length;
    setTab(tabs[place]![0]);
    (event.currentTarget as Element).querySelectorAll<HTMLElement>("[role=tab]")[place]!.focus();
  };
  const panel = (name: string) => ({
    role: "tabpanel" as const,
    id: `${id}-${name}-panel`,
    "aria-labelledby": `${id}-${name}`,
    // Hidden, not removed: a draft or an open file is still there on the way back.
    hidden: tab !== name,
  });
  const tabbed = side && !wide;
  const list = tabbed && (
    <div class="sagents-tabs" role="tablist" aria-label="Parts of the panel" onKeyDown={onKeyDown}>
      {tabs.map(([name, label]) => (
        <BareButton
          key={name}
          role="tab"
          id={`${id}-${name}`}
          class="sagents-tab"
          aria-selected={tab === name}
          aria-controls={`${id}-${name}-panel`}
          tabIndex={tab === name ? 0 : -1}
          onClick={() => setTab(name)}
        >
          {label}
          {name === "chat" && tab !== "chat" && state.interrupt && <span class="sagents-badge">approval</span>}
        </BareButton>
      ))}
    </div>
  );
  // The conversation stays the same element, with its focus and its draft, when something comes beside it.
  return (
    <>
      {list}
      <div class={tabbed || !side ? undefined : picked.path ? "sagents-columns sagents-reading" : "sagents-columns"}>
        <Conversation state={state} {...(tabbed && panel("chat"))} />
        {tabbed
          ? tabs.slice(1).map(([name, , content]) => (
              <div key={name} {...panel(name)}>
                {content}
              </div>
            ))
          : side && (
              <aside class="sagents-side">
                {todos.length > 0 && !picked.path && <Todos todos={todos} status={state.status} />}
                {files && <Files files={state.files} />}
              </aside>
            )}
      </div>
    </>
  );
}

function RunBody({ state, runId, typed }: { state: ViewState; runId: string; typed: boolean }) {
  // Todos and files belong to the session, so only its newest run shows them, and others what they have done.
  const newest = newestRun(state);
  const current = !newest || newest === runId || !(runId in state.runs);
  const todos = current ? todosOf(state, runId) : doneIn(entriesOf(state, runId));
  const files = useEver(state.files.length > 0);
  return (
    <>
      {todos.length > 0 && <Todos todos={todos} status={current ? state.status : ""} folding />}
      <Boundary instead={UNSHOWN}>
        <Transcript state={state} runId={runId} typed={typed} loose={current || state.interrupt?.run_id === runId} />
      </Boundary>
      {current && <Queue queued={state.queued} active={state.status === "running"} />}
      {current && files && <Files files={state.files} folding />}
    </>
  );
}

/** Whether it holds or has held: files that a run has deleted, the last ones too, can be brought back there. */
function useEver(holds: boolean): boolean {
  const held = useRef(false);
  held.current ||= holds;
  return held.current;
}

/** How many requests of the cell wait for its run. */
function useWaiting(model: Traits): number {
  const [waiting, setWaiting] = useState(0);
  useEffect(() => {
    const note = () => setWaiting(model.get("waiting"));
    model.on("change:waiting", note);
    note();
    return () => model.off("change:waiting", note);
  }, [model]);
  return waiting;
}

function useWidth(element: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(entry!.contentRect.width));
    observer.observe(element.current!);
    return () => observer.disconnect();
  }, []);
  return width;
}
