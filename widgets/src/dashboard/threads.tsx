// The threads of an agency as a tree: below each those that it has begun.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "../button";
import { ErrorText } from "../error-text";
import { useDoing, useHub, type Blueprint, type Thread } from "./hub";
import { addressOf, go } from "./place";
import { Ago } from "./time";

type Node = { thread: Thread; children: Node[] };

/** Each below the one that it reports to, if that is there; the newest first on every floor. */
export function treeOf(threads: Thread[]): Node[] {
  const nodes = new Map(threads.map((thread) => [thread.id, { thread, children: [] as Node[] }]));
  const top: Node[] = [];
  for (const node of nodes.values()) {
    const parent = nodes.get(node.thread.parent?.threadId ?? "");
    (parent?.children ?? top).push(node);
  }
  return top;
}

export const nameOf = (thread: Thread): string => thread.title || `New ${thread.agentType}`;

/** Of a hub's statuses the one of the panel that looks the same, and what people read. */
const STATUSES: Record<string, [string, string]> = {
  registered: ["idle", "New"],
  running: ["running", "Running"],
  completed: ["completed", "Done"],
  canceled: ["cancelled", "Stopped"],
  error: ["error", "Failed"],
};
export function statusOf({ status = "registered", reason, kernel }: Thread): [string, string] {
  if (kernel === "away") return ["closed", "Kernel away"];
  if (status !== "paused") return STATUSES[status] ?? ["idle", status];
  if (reason === "hitl") return ["interrupted", "Needs approval"];
  return reason === "subagent" ? ["running", "Waits for others"] : ["interrupted", "Paused"];
}

type TreeProps = { agency: string; threads: Thread[]; current: string };

/** So many are shown of those that nobody has handed on, until more are asked for. */
const MOST_SHOWN = 50;

export function ThreadTree({ agency, threads, current }: TreeProps) {
  const [all, setAll] = useState(false);
  if (threads.length === 0) return <p class="hub-empty">There is no thread yet.</p>;
  const nodes = treeOf(threads);
  const has = ({ thread, children }: Node): boolean => thread.id === current || children.some(has);
  const shown = all || nodes.slice(MOST_SHOWN).some(has) ? nodes : nodes.slice(0, MOST_SHOWN);
  return (
    <div class="hub-list">
      <Floor agency={agency} nodes={shown} current={current} />
      {shown.length < nodes.length && (
        <Button kind="plain" onClick={() => setAll(true)}>
          Show {nodes.length - shown.length} more
        </Button>
      )}
    </div>
  );
}

function Floor({ agency, nodes, current }: { agency: string; nodes: Node[]; current: string }) {
  return (
    <ul class="hub-tree">
      {nodes.map(({ thread, children }) => {
        const [status, label] = statusOf(thread);
        return (
          <li key={thread.id}>
            <a
              class="hub-row"
              href={addressOf({ page: "thread", agency, thread: thread.id })}
              aria-current={thread.id === current ? "page" : undefined}
              data-testid="thread"
              data-status={status}
            >
              <span class="hub-row-name">{nameOf(thread)}</span>
              <span class="hub-row-about">
                <span class="sagents-status" data-status={status}>
                  <span class="sagents-dot" />
                  {label}
                </span>
                <span>{thread.agentType}</span>
                <Ago at={thread.since ?? thread.createdAt} />
              </span>
            </a>
            {children.length > 0 && <Floor agency={agency} nodes={children} current={current} />}
          </li>
        );
      })}
    </ul>
  );
}

/** What was chosen and written, in case somebody looks elsewhere meanwhile. */
const drafts = new Map<string, { type: string; text: string }>();

type NewProps = { agency: string; name: string; blueprints: Blueprint[] | null; onMade: () => void };

export function NewThread({ agency, name, blueprints, onMade }: NewProps) {
  const hub = useHub();
  const [draft, setDraft] = useState(() => drafts.get(agency) ?? { type: "", text: "" });
  const { busy, error, run } = useDoing();
  const area = useRef<HTMLTextAreaElement>(null);
  const type = blueprints?.some((each) => each.name === draft.type) ? draft.type : (blueprints?.[0]?.name ?? "");
  const chosen = blueprints?.find((each) => each.name === type);
  useLayoutEffect(() => void drafts.set(agency, draft), [draft]);
  const change = (changes: Partial<typeof draft>) => setDraft({ ...draft, ...changes });
  const begin = async () => {
    if (busy || !type) return;
    const made = await run(() => hub.createThread(agency, type, draft.text.trim()));
    if (!made) return area.current?.focus();
    drafts.delete(agency);
    onMade();
    go({ page: "thread", agency, thread: made.id });
  };
  const onSubmit = (event: Event) => {
    event.preventDefault();
    void begin();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    void begin();
  };
  return (
    <div class="hub-page">
      <h1>New thread</h1>
      {blueprints?.length === 0 ? (
        <p class="hub-empty">
          {name} has no blueprint yet: <a href={addressOf({ page: "blueprint", agency, name: "" })}>write the first one</a>.
        </p>
      ) : (
        <form class="hub-form" onSubmit={onSubmit}>
          <div class="hub-field">
            <label for="hub-type">Blueprint</label>
            <select id="hub-type" aria-describedby="hub-type-hint" value={type} disabled={!blueprints} onChange={(event) => change({ type: event.currentTarget.value })}>
              {blueprints?.map((each) => (
                <option key={each.name} value={each.name}>
                  {each.name}
                </option>
              ))}
            </select>
            <small id="hub-type-hint">{chosen?.description}</small>
          </div>
          <div class="hub-field">
            <label for="hub-first">First message</label>
            <textarea
              id="hub-first"
              aria-describedby="hub-first-hint"
              ref={area}
              rows={4}
              placeholder="What is to be done?"
              value={draft.text}
              onInput={(event) => change({ text: event.currentTarget.value })}
              onKeyDown={onKeyDown}
            />
            <small id="hub-first-hint">Enter begins; Shift and Enter make a new line.</small>
          </div>
          <ErrorText text={error} />
          <div class="hub-buttons">
            <button class="sagents-button sagents-primary" disabled={busy || !type}>
              Begin
            </button>
          </div>
        </form>
      )}
    </div>
  );
}
