// The written protocol (../PROTOCOL.md) as types, and how events change what a page knows.
// `sagents_nb/panel/protocol.py` does the same; tests/fixtures/protocol holds both to it.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export type TextPart = { type: "text"; text: string };
export type ThinkingPart = { type: "thinking"; text: string };
export type ImagePart = { type: "image"; data?: string; mime_type?: string; url?: string };
export type FilePart = { type: "file"; data?: string; mime_type?: string; name?: string; url?: string };
export type JsonPart = { type: "json"; data: Json };
export type ProviderPart = { type: "provider"; provider: string; data: JsonObject };
export type ContentPart = TextPart | ThinkingPart | ImagePart | FilePart | JsonPart | ProviderPart;

export type ToolCall = {
  type: "tool_call";
  id: string;
  name: string;
  arguments?: JsonObject;
  numbers?: Record<string, string>;
  error?: string;
  /** What it is in words, of one of which no event of this kernel tells. */
  display_text?: string;
};
export type ResultImage = { media_type: string; data: string };
export type ToolResult = {
  type: "tool_result";
  tool_call_id: string;
  name: string;
  content: string | ContentPart[];
  is_error?: boolean;
  is_interrupt?: boolean;
  metadata?: JsonObject;
  /** "rejected", "skipped" or "cancelled"; else the call has ended as `is_error` says. */
  status?: string;
  /** What was decided on the call, and by whom. */
  decision?: Decided;
  /** Of the arguments that somebody edited and the defaults, which are in the metadata. */
  numbers?: Record<string, string>;
  /** What the wire carries of its images; a whole result has them in its content. */
  images?: ResultImage[];
  /** The original length, where the text was cut for the wire. */
  shortened?: number;
};
export type Part = ContentPart | ToolCall | ToolResult;

export type Usage = {
  input_tokens?: number;
  output_tokens?: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  cost_usd?: number;
};
export type Message = {
  role: string;
  parts?: Part[];
  usage?: Usage;
  stop_reason?: string;
  error?: string;
  metadata?: JsonObject;
};

export type Todo = {
  id?: number | string;
  content: string;
  status?: "pending" | "in_progress" | "completed" | "cancelled";
};

export type ActionRequest = {
  tool_call_id: string;
  tool_name: string;
  arguments?: JsonObject;
  numbers?: Record<string, string>;
  display_text?: string;
  allowed_decisions?: string[];
  digest?: string;
  /** What the tool takes for arguments that the call leaves out. */
  defaults?: JsonObject;
  /** Its arguments, as the schema of its tool orders them, and of what kind the field of each is. */
  parameters?: Record<string, Parameter>;
  /** Whether the agent has no such tool by now. */
  missing?: boolean;
};
/** What the schema of a tool says of an argument that is a number, yes or no, or one of a few; of others nothing. */
export type Parameter = { type?: "integer" | "number" | "boolean"; enum?: (string | number | boolean | null)[] };
export type Interrupt = {
  id?: string;
  type: string;
  run_id: string;
  action_requests?: ActionRequest[];
  message?: string;
  data?: JsonObject;
  /** What it was put together from, where several asked at once. */
  parts?: Interrupt[];
};
export type Decision =
  | { type: "approve"; digest: string; always?: boolean }
  | { type: "edit"; digest: string; arguments: JsonObject; json?: string }
  | { type: "reject"; digest: string; message: string }
  | { type: "respond"; digest: string; answer: Json };
export type Decided = { type: string; by: string; [field: string]: Json };

export type Entry = { seq: number; run_id: string; ts: number; message: Message };
export type PartialPart =
  | { type: "text"; text: string }
  | { type: "thinking"; text: string }
  | { type: "tool_call"; index: number; id: string | null; name: string | null; text: string };
export type Partial = { run_id: string; seq: number; parts: PartialPart[] };
export type ToolInfo = {
  name: string;
  status: string;
  display_text: string | null;
  progress?: { text: string; fraction: number | null };
  duration?: number;
};
export type FileEntry = {
  path: string;
  size?: number;
  modified?: number;
  mime_type?: string;
  is_directory?: boolean;
};
export type RunInfo = { status: string; started: number | null; ended: number | null };

/** A message that waits; one that begins a run of its own has the id of that. */
export type Queued = { run_id: string; when: string; text: string };

export type ViewState = {
  session_id: string;
  status: string;
  error: string | null;
  model: string;
  /** How many tokens the model takes at most, where that is known. */
  context_window: number | null;
  entries: Entry[];
  earlier: number;
  /** Entries of runs in conversations before this one. */
  past: Entry[];
  partial: Partial | null;
  tools: Record<string, ToolInfo>;
  todos: Todo[];
  interrupt: Interrupt | null;
  decided: Record<string, Decided>;
  files: FileEntry[];
  usage: Usage;
  runs: Record<string, RunInfo>;
  queued: Queued[];
  /** By the `branch` in the metadata of the message that begins them. */
  branches: Record<string, { current: number; count: number }>;
  /** Whether a store has the conversation, so that another kernel may go on with it. */
  kept?: boolean;
  /** What sub-agents say and do, by the call that they are of. */
  agents: Record<string, AgentState>;
};

export type AgentState = Pick<ViewState, "entries" | "earlier" | "partial" | "tools" | "usage" | "agents">;

const NEW_AGENT: AgentState = { entries: [], earlier: 0, partial: null, tools: {}, usage: {}, agents: {} };
/** What is told of sub-agents. */
const OF_SUB_AGENTS = new Set<string>(["message_start", "message_update", "message_end", "tool_execution_start", "tool_execution_update", "tool_execution_end", "subagent_event"]);
/** Entries of each sub-agent. */
const SHOWN_OF_SUB_AGENTS = 30;

type Delta =
  | { type: "text"; text: string }
  | { type: "thinking"; text: string }
  | { type: "tool_call"; index: number; text?: string; id?: string; name?: string };

/** A part of a message, or what is left of it where the partial's part of that index says the rest. */
type WirePart = Part | ({ type: string; streamed: number } & { [field: string]: Json });
type WireMessage = Omit<Message, "parts"> & { parts?: WirePart[] };

/** An event on the wire; fields that hold their default are left out. */
export type WireEvent = { seq: number; ts?: number; run_id?: string } & (
  | { type: "agent_start" }
  | { type: "message_start"; message: { role: string } }
  | { type: "message_update"; delta: Delta }
  | { type: "message_end"; message: WireMessage }
  | { type: "tool_execution_start"; tool_call: ToolCall; display_text?: string }
  | { type: "tool_execution_update"; tool_call_id: string; text: string; fraction?: number }
  | {
      type: "tool_execution_end";
      tool_call_id: string;
      tool_name: string;
      status: string;
      duration?: number;
      /** The result, where a question stands in its place. */
      answer?: ToolResult;
    }
  | { type: "todos_updated"; todos: Todo[] }
  | { type: "interrupt"; interrupt: Omit<Interrupt, "run_id"> }
  | { type: "decision"; tool_call_id: string; decision: { type: string }; by?: string }
  | { type: "agent_end"; status: string; error?: string }
  | { type: "status_changed"; status: string; previous?: string; reason?: string }
  | { type: "message_queued"; when?: string; text: string }
  | { type: "message_withdrawn"; text: string }
  | { type: "file_updated"; path: string; entry?: FileEntry }
  | { type: "file_deleted"; path: string }
  | { type: "file_moved"; old_path: string; path: string }
  | { type: "subagent_event"; tool_call_id: string; event: WireEvent }
);

export type FromKernel =
  | { type: "snapshot"; seq: number; state: ViewState }
  | { type: "events"; after: number; seq: number; events: WireEvent[] }
  | { type: "reply"; id: string; file?: FileContent; result?: ToolResult; changes?: FileChange[]; change?: ChangedFile; models?: ModelChoice[]; entries?: Entry[]; reads_images?: boolean; session_id?: string; code?: string; message?: Message }
  | { type: "error"; id: string; kind: string; message: string; tool_call_id?: string }
  | { type: "closed" };
export type Reply = Extract<FromKernel, { type: "reply" }>;
/** A model to choose; `missing` names the variable that has no key, "" if none is needed. */
export type ModelChoice = { name: string; label: string; missing: string; current: boolean };
/** What the last run has done to a file. */
export type FileChange = { path: string; kind: "new" | "changed" | "deleted" };
export type ChangedFile = FileChange & {
  before: string | null;
  after: string | null;
  /** Whether it is known what it was. */
  kept: boolean;
  /** Whether it has changed after the run. */
  since: boolean;
};
export type FileContent = {
  path: string;
  content: string | null;
  size: number;
  truncated: boolean;
  media_type?: string;
  /** Where it lies on the kernel's disk. */
  location?: string;
  /** Base64: an image, or all of a file that was asked for whole. */
  data?: string;
};

/** What a page knows after `event`. Pure: what did not change is the same object. */
export function reduce(state: ViewState, event: WireEvent): ViewState {
  const run_id = event.run_id ?? "";
  switch (event.type) {
    case "agent_start": {
      const started = state.runs[run_id]?.started ?? event.ts ?? null;
      const run = { status: "running", started, ended: null };
      const queued = state.queued.filter((waits) => !run_id || waits.run_id !== run_id);
      return { ...state, runs: { ...state.runs, [run_id]: run }, error: null, queued };
    }
    case "message_start":
      if (event.message.role !== "assistant") return state;
      return { ...state, partial: { run_id, seq: event.seq, parts: [] } };
    case "message_update": {
      const partial = state.partial ?? { run_id, seq: event.seq, parts: [] };
      return { ...state, partial: { ...partial, parts: grow(partial.parts, event.delta) } };
    }
    case "message_end":
      return endMessage(state, event.message, { seq: event.seq, run_id, ts: event.ts ?? 0 });
    case "tool_execution_start": {
      const { id, name } = event.tool_call;
      const info = { name, status: "running", display_text: event.display_text ?? null };
      return { ...state, tools: { ...state.tools, [id]: info } };
    }
    case "tool_execution_update": {
      const info = state.tools[event.tool_call_id];
      if (!info) return state;
      const progress = { text: event.text, fraction: event.fraction ?? null };
      return { ...state, tools: { ...state.tools, [event.tool_call_id]: { ...info, progress } } };
    }
    case "tool_execution_end": {
      const known = state.tools[event.tool_call_id];
      const { progress: _, ...info } = known ?? { name: event.tool_name, display_text: null };
      const ended = { ...info, status: event.status, duration: event.duration ?? 0 };
      const entries = event.answer ? answered(state.entries, event.answer) : state.entries;
      return { ...state, entries, tools: { ...state.tools, [event.tool_call_id]: ended } };
    }
    case "todos_updated":
      return { ...state, todos: event.todos };
    case "interrupt": {
      // Providers reuse call ids, so an old answer must not seem to answer a new question.
      const waiting = new Set(event.interrupt.action_requests?.map((r) => r.tool_call_id));
      const others = Object.entries(state.decided).filter(([id]) => !waiting.has(id));
      const interrupt = { ...event.interrupt, run_id };
      return { ...state, interrupt, decided: Object.fromEntries(others) };
    }
    case "decision": {
      const decision = { ...event.decision, by: event.by ?? "user" };
      const decided = { ...state.decided, [event.tool_call_id]: decision };
      const open = undecided({ ...state, decided }).length > 0;
      return { ...state, decided, interrupt: open ? state.interrupt : null };
    }
    case "agent_end": {
      const started = state.runs[run_id]?.started ?? null;
      const run = { status: event.status, started, ended: event.ts ?? null };
      const runs = { ...state.runs, [run_id]: run };
      return { ...state, runs, error: event.error ?? null, partial: null };
    }
    case "status_changed": {
      const interrupt = event.status === "interrupted" ? state.interrupt : null;
      return { ...state, status: event.status, interrupt };
    }
    case "message_queued":
      return { ...state, queued: [...state.queued, { run_id, when: event.when ?? "queue", text: event.text }] };
    case "message_withdrawn":
      return { ...state, queued: without(state.queued, run_id, event.text) };
    case "file_updated": {
      const others = state.files.filter((file) => file.path !== event.path);
      return { ...state, files: sorted([...others, { ...event.entry, path: event.path }]) };
    }
    case "file_deleted":
      return { ...state, files: state.files.filter((file) => file.path !== event.path) };
    case "file_moved":
      return { ...state, files: move(state.files, event.old_path, event.path) };
    case "subagent_event": {
      if (!OF_SUB_AGENTS.has(event.event.type)) return state;
      const agent = reduceAgent(state.agents[event.tool_call_id] ?? NEW_AGENT, event.event);
      return { ...state, agents: { ...state.agents, [event.tool_call_id]: agent } };
    }
    default:
      return state;
  }
}

/** What a sub-agent has of a conversation is less, and is told of by the same rules. */
function reduceAgent(agent: AgentState, event: WireEvent): AgentState {
  const known = { ...agent, queued: [], decided: {} } as unknown as ViewState;
  const { entries, earlier, partial, tools, usage, agents } = reduce(known, event);
  const over = Math.max(0, entries.length - SHOWN_OF_SUB_AGENTS);
  return { entries: over ? entries.slice(over) : entries, earlier: earlier + over, partial, tools, usage, agents };
}

/** The last run that has begun. */
export const newestRun = ({ runs }: ViewState): string | undefined => Object.keys(runs).at(-1);

/** The entries of one run, which may be of a conversation before this one. */
export const entriesOf = (state: ViewState, runId: string): Entry[] =>
  [...state.past, ...state.entries].filter((entry) => entry.run_id === runId);

/** The calls of the pending interrupt that nobody has answered yet. */
export function undecided(state: ViewState): ActionRequest[] {
  const requests = state.interrupt?.action_requests ?? [];
  return requests.filter((request) => !(request.tool_call_id in state.decided));
}

/** Whether that call waits for another thread, and for no person. */
export const waitsForThread = (interrupt: Interrupt, { tool_call_id }: ActionRequest): boolean =>
  (interrupt.parts?.length ? interrupt.parts : [interrupt]).some(
    ({ data, action_requests }) => data?.subagents && action_requests?.some((request) => request.tool_call_id === tool_call_id),
  );

/** The calls that nobody has answered yet, and people have to. */
export const askedOfPeople = (state: ViewState): ActionRequest[] =>
  undecided(state).filter((request) => !waitsForThread(state.interrupt!, request));

/** What a call waits for: leave to run, words, or what became of it in a crash. */
export function wants(interrupt: Interrupt, request: ActionRequest): "approval" | "answer" | "doubt" {
  if (interrupt.type === "in_doubt") return "doubt";
  return (request.allowed_decisions?.includes("approve") ?? true) ? "approval" : "answer";
}

/** The entries with the answer in the place of the newest question of its call. */
function answered(entries: Entry[], answer: ToolResult): Entry[] {
  const asks = (part: Part) =>
    part.type === "tool_result" && part.is_interrupt === true && part.tool_call_id === answer.tool_call_id;
  const place = entries.findLastIndex(({ message }) => message.parts?.some(asks));
  if (place < 0) return entries;
  const entry = entries[place]!;
  const parts = entry.message.parts!.map((part) => (asks(part) ? answer : part));
  return entries.with(place, { ...entry, message: { ...entry.message, parts } });
}

function grow(parts: PartialPart[], delta: Delta): PartialPart[] {
  const last = parts.at(-1);
  const text = delta.text ?? "";
  if (delta.type !== "tool_call") {
    if (last?.type !== delta.type) return [...parts, { type: delta.type, text }];
    return [...parts.slice(0, -1), { ...last, text: last.text + text }];
  }
  if (last?.type !== "tool_call" || last.index !== delta.index) {
    const { index, id = null, name = null } = delta;
    return [...parts, { type: "tool_call", index, id, name, text }];
  }
  return [...parts.slice(0, -1), { ...last, text: last.text + text }];
}

function endMessage(state: ViewState, sent: WireMessage, where: Omit<Entry, "message">): ViewState {
  const message = whole(sent, state.partial);
  const entries = [...state.entries, { ...where, message }];
  // Nothing is known of its calls, whatever had their ids before.
  const ids = message.role === "assistant" ? callsOf(message) : [];
  return {
    ...state,
    entries,
    tools: dropped(state.tools, ids),
    decided: dropped(state.decided, ids),
    agents: dropped(state.agents, ids),
    // One that began a run has left it when that began.
    queued: message.role === "user" ? without(state.queued, "", queuedText(message)) : state.queued,
    partial: message.role === "assistant" ? null : state.partial,
    usage: message.usage ? addUsage(state.usage, message.usage) : state.usage,
  };
}

const callsOf = ({ parts = [] }: Message): string[] =>
  parts.flatMap((part) => (part.type === "tool_call" ? [part.id] : []));

/** The same object where none of these is in it. */
function dropped<T>(from: Record<string, T>, ids: string[]): Record<string, T> {
  if (!ids.some((id) => id in from)) return from;
  return Object.fromEntries(Object.entries(from).filter(([id]) => !ids.includes(id)));
}

/** The queue without the first message of that run and text. */
function without(queued: Queued[], run_id: string, text: string): Queued[] {
  const place = queued.findIndex((waits) => waits.run_id === run_id && waits.text === text);
  return place < 0 ? queued : queued.toSpliced(place, 1);
}

export const queuedText = (message: Message) =>
  (message.parts ?? [])
    .map((part) => ("text" in part && part.text) || `[${part.type}]`)
    .join("\n")
    .slice(0, 20_000);

/** The message with the texts of `partial` that it names. */
function whole(message: WireMessage, partial: Partial | null): Message {
  const parts = message.parts?.map((part) => {
    if (!("streamed" in part)) return part;
    const { streamed, ...rest } = part;
    const text = partial?.parts[streamed]?.text ?? "";
    return { ...rest, ...(part.type === "tool_call" ? { arguments: JSON.parse(text) } : { text }) } as Part;
  });
  return parts ? { ...message, parts } : (message as Message);
}

/** The sum, field by field; a field that neither has stays away. */
export function addUsage(left: Usage, right: Usage): Usage {
  const sum: Usage = { ...left };
  for (const [key, value] of Object.entries(right) as [keyof Usage, number | null][]) {
    if (typeof value === "number") sum[key] = (sum[key] ?? 0) + value;
  }
  return sum;
}

function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(`${directory}/`);
}

function move(files: FileEntry[], from: string, to: string): FileEntry[] {
  const moved = files
    .filter((file) => isWithin(file.path, from))
    .map((file) => ({ ...file, path: to + file.path.slice(from.length) }));
  const replaced = new Set(moved.map((file) => file.path));
  const others = files.filter((file) => !isWithin(file.path, from) && !replaced.has(file.path));
  return sorted([...others, ...moved]);
}

function sorted(files: FileEntry[]): FileEntry[] {
  return files.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
}
