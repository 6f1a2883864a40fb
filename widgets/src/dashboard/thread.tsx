// One thread: the panel of the notebook, over a socket.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { newMemory, type Memory } from "../memory";
import { Store } from "../store";
import { useStoreState } from "../use-store";
import { View, type Traits } from "../view";
import { Confirm } from "./confirm";
import { useHub, type Thread } from "./hub";
import { addressOf, go } from "./place";
import { nameOf } from "./threads";

/** So many that were looked at go on being drawn, out of sight, with what is being written there. */
const MOST_KEPT = 4;

const SOON = 200;

/** Milliseconds after which it is looked whether a kernel serves again what it had served. */
const AGAIN = 2_000;

/** No cell is above a thread, and none waits for it. */
const NO_CELL: Traits = { get: () => undefined as never, on() {}, off() {} };

/** What was opened and written in each thread, by its address: a hub that begins anew has people sign in again, to the same threads. */
const memories = new Map<string, Memory>();

function memoryOf(agency: string, id: string): Memory {
  const at = addressOf({ page: "thread", agency, thread: id });
  const memory = memories.get(at) ?? newMemory();
  memories.set(at, memory);
  return memory;
}

type Props = { agency: string; id: string; threads: Thread[] | null; /** Is called when a thread is not what it was. */ onChange: () => void };

/** Shows a thread; those that were shown before are as they were left when they are shown again. */
export function Threads({ agency, id, threads, onChange }: Props) {
  const [kept, setKept] = useState<string[]>([]);
  const gone = threads !== null && !threads.some((thread) => thread.id === id);
  const there = kept.filter((each) => each === id || threads === null || threads.some((thread) => thread.id === each));
  const shown = there.includes(id) ? there : [...there, id].slice(-MOST_KEPT);
  useEffect(() => setKept([...shown.filter((each) => each !== id), id]), [id, threads]);
  return (
    <>
      {shown.toSorted().map((each) => (
        <div key={each} class="hub-thread" hidden={each !== id}>
          <OneThread agency={agency} id={each} threads={threads ?? []} gone={each === id && gone} onChange={onChange} />
        </div>
      ))}
    </>
  );
}

type OneProps = { agency: string; id: string; threads: Thread[]; gone: boolean; onChange: () => void };

function OneThread({ agency, id, threads, gone, onChange }: OneProps) {
  const hub = useHub();
  const thread = threads.find((each) => each.id === id);
  // As it was known last, where it is on no page any more.
  const known = useRef(thread);
  if (thread) known.current = thread;
  const waitsFor = thread?.reason === "subagent" ? threads.filter(({ parent, status = "" }) => parent?.threadId === id && ["running", "paused"].includes(status)) : [];
  const [turn, setTurn] = useState(0);
  const { socket, store } = useMemo(() => {
    const socket = hub.socket(agency, id);
    return { socket, store: new Store(socket) };
  }, [hub, agency, id, turn]);
  useEffect(() => () => socket.end(), [socket]);
  const state = useStoreState(store);
  // On a new way nothing may ever come: what there is stays until something does.
  const told = useRef({ agency, store });
  if (state || told.current.agency !== agency) told.current = { agency, store };
  const shown = told.current.store;
  // The page need not ask by itself; the hub writes down a moment later what it has told.
  useEffect(() => {
    const timer = setTimeout(onChange, SOON);
    return () => clearTimeout(timer);
  }, [state?.status, state?.interrupt?.id]);
  // A kernel that has begun anew has the conversation again, and tells of it on another way.
  const isBack = thread?.kernel === "here" && !store.open;
  useEffect(() => {
    if (!isBack) return;
    const timer = setTimeout(() => setTurn(turn + 1), AGAIN);
    return () => clearTimeout(timer);
  }, [isBack, turn]);
  const closed = gone && !shown.open;
  // Its row may be of before, where the kernel that served the page serves nobody now.
  const withdrawn = Boolean(known.current?.kernel) && !shown.open && (!thread || shown !== store);
  const remove = async () => {
    await hub.deleteThread(agency, id);
    onChange();
    go({ page: "new", agency }, true);
  };
  return (
    <>
      <div class="hub-thread-head">
        <h1>{known.current ? nameOf(known.current) : closed ? "No such thread" : "Thread"}</h1>
        {thread && <span class="hub-faint">{thread.agentType}</span>}
        {thread?.parent && (
          <a class="hub-relative" href={addressOf({ page: "thread", agency, thread: thread.parent.threadId })}>
            Its parent
          </a>
        )}
        <span class="hub-space" />
        {thread?.kernel ? (
          <Confirm label="Take off" of="this conversation" question="Take it off this page? Its notebook keeps all of it." verb="Take off" onYes={remove} />
        ) : (
          thread && <Confirm label="Delete" of="this thread" question="Delete this thread, with its files?" verb="Delete" onYes={remove} />
        )}
      </div>
      {withdrawn && (
        <p class="hub-notice" role="status" data-testid="withdrawn">
          The notebook no longer shows this conversation, and keeps it: run <code>%agent serve</code> there, which says where it is live again.
        </p>
      )}
      {closed && !withdrawn && (
        <p class="hub-notice" role="status" data-testid="deleted">
          This thread is not there any more. <a href={addressOf({ page: "new", agency })}>Begin a new one</a>
        </p>
      )}
      {thread?.kernel === "away" && (
        <p class="hub-notice" role="status" data-testid="kernel-away">
          No kernel serves this conversation now, so it can only be read. To go on, open its notebook and run <code>%load_ext sagents_nb</code>, <code>%agent serve</code> and{" "}
          <code>%agent load {id}</code>.
        </p>
      )}
      {waitsFor.length > 0 && (
        <p class="hub-notice" role="status" data-testid="waits-for">
          It waits for{" "}
          {waitsFor.map((child, place) => (
            <>
              {place > 0 && ", "}
              <a href={addressOf({ page: "thread", agency, thread: child.id })}>{nameOf(child)}</a>
              {child.reason === "hitl" && ", which needs an approval"}
            </>
          ))}
        </p>
      )}
      <View store={shown} name="session" runId="" memory={memoryOf(agency, id)} model={NO_CELL} />
    </>
  );
}
