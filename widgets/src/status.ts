// What a session, or one run of it, is doing, in words.
import { isCall, resultsByEntry } from "./calls";
import { isRead, TODOS } from "./rows";
import { askedOfPeople, entriesOf, newestRun, undecided, waitsForThread, wants, type ViewState } from "./protocol";

export type Status = {
  /** The word of the protocol, or "connecting" or "completed". */
  name: string;
  label: string;
  /** Whether there is something to stop. */
  active: boolean;
};

const LABELS: Record<string, string> = {
  connecting: "Connecting",
  waiting: "Waiting to start",
  idle: "Ready",
  running: "Running",
  paused: "Paused",
  cancelled: "Stopped",
  error: "Failed",
  failed: "Failed",
  closed: "Closed",
  completed: "Done",
  rejected: "Rejected",
  declined: "Not done",
};

/** Whether nothing else can begin: something runs, waits, or nobody can be asked. */
export const goesOn = (status: string): boolean => ["running", "interrupted", "closed"].includes(status);

export function statusOf(state: ViewState | null, open: boolean, runId: string): Status {
  const name = nameOf(state, open, runId);
  const label = name === "interrupted" ? labelOf(state) : LABELS[name];
  const active = open && ["connecting", "waiting", "running", "interrupted"].includes(name);
  return { name, label: label ?? name, active };
}

function labelOf(state: ViewState | null): string {
  const interrupt = state?.interrupt;
  const requests = interrupt?.action_requests ?? [];
  if (!interrupt || requests.length === 0) return "Waiting";
  if (undecided(state).some((request) => waitsForThread(interrupt, request)) && askedOfPeople(state).length === 0) return "Waits for sub-agents";
  const approval = requests.some((request) => wants(interrupt, request) === "approval");
  return approval ? "Needs approval" : "Needs an answer";
}

function nameOf(state: ViewState | null, open: boolean, runId: string): string {
  if (!state) return open ? "connecting" : "closed";
  if (!runId) return state.status;
  const run = state.runs[runId];
  if (!run) {
    if (!open) return "closed";
    // Not begun: queued behind another run, or its first event is still on its way.
    const shown = entriesOf(state, runId).length > 0;
    return shown ? "completed" : "waiting";
  }
  if (run.status === "running") return open ? "running" : "closed";
  // A run that stopped for an approval waits only as long as the question stands.
  if (run.status === "interrupted") {
    if (!open) return "closed";
    const asker = state.interrupt && (state.interrupt.run_id || runId);
    if (asker === runId) return "interrupted";
    // What was stopped while it waited, or followed by something else, never goes on.
    const waits = goesOn(state.status) || state.status === "paused";
    return newestRun(state) === runId && waits ? "paused" : "cancelled";
  }
  return run.status === "completed" ? refusedIn(state, runId) || "completed" : run.status;
}

/** How the calls of a run ended none of which did anything, but for those that only look: "" where one did. */
function refusedIn(state: ViewState, runId: string): string {
  const entries = entriesOf(state, runId);
  const results = resultsByEntry(entries);
  const ends = new Set<string | undefined>();
  for (const entry of entries) {
    for (const call of (entry.message.parts ?? []).filter(isCall)) {
      const { status } = results.get(entry)?.[call.id] ?? {};
      if (status || !(isRead(call.name) || call.name === TODOS)) ends.add(status);
    }
  }
  if (ends.size === 0 || [...ends].some((end) => end !== "rejected" && end !== "declined")) return "";
  return ends.size === 1 ? [...ends][0]! : "declined";
}
