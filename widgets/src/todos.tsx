// The agent's list of things to do.
import { isResult } from "./calls";
import { Faint } from "./faint";
import { Icon, type IconName } from "./icons";
import { withoutTicks } from "./format";
import { useFold } from "./memory";
import { Visible } from "./text-block";
import type { Entry, Todo, ViewState } from "./protocol";

const icons: Record<string, IconName> = {
  pending: "circle",
  in_progress: "busy",
  completed: "done",
  cancelled: "skip",
  unfinished: "stopped",
};
const words: Record<string, string> = {
  pending: "To do",
  in_progress: "In progress",
  completed: "Done",
  cancelled: "Dropped",
  unfinished: "Unfinished",
};

type Props = {
  todos: Todo[];
  /** The session's status: nothing turns when nobody does it, and nothing is in progress when nobody will. */
  status: string;
  folding?: boolean;
};

/** The list, or, once all of it is done and the kernel has cleared it, what was done for the last prompt. */
export function todosOf({ todos, entries }: ViewState, runId = ""): Todo[] {
  if (todos.length > 0) return todos;
  const last = entries.findLastIndex(({ message }) => message.role === "user");
  return doneIn(runId ? entries.filter((entry) => entry.run_id === runId) : entries.slice(last + 1));
}

/** The last list that was completed in these messages. */
export function doneIn(entries: Entry[]): Todo[] {
  const results = entries.flatMap(({ message }) => (message.parts ?? []).filter(isResult));
  const done = results.findLast((result) => Array.isArray(result.metadata?.todos))?.metadata?.todos;
  return (done ?? []) as Todo[];
}

export function Todos({ todos, status: session, folding = false }: Props) {
  const [, fold] = useFold("todos", true);
  const goes = ["running", "interrupted"].includes(session);
  const done = todos.filter((todo) => todo.status === "completed").length;
  const title = (
    <>
      <span class="sagents-section-title">Todos</span>
      <Faint>{todos.length > 0 && `${done} of ${todos.length}`}</Faint>
      <progress class="sagents-progress" value={done} max={todos.length || 1} aria-hidden="true" />
    </>
  );
  const list = (
    <ul class="sagents-todos" aria-label="Todos">
      {todos.map((todo, index) => {
        const given = todo.status ?? "pending";
        const status = given === "in_progress" && !goes ? "unfinished" : given;
        return (
          <li key={todo.id ?? index} class="sagents-todo" data-testid="todo" data-status={status}>
            <Icon name={icons[status] ?? "circle"} turning={session === "running" && status === "in_progress"} />
            <span class="sagents-sr">{words[status]}: </span>
            <span>
              <Visible text={withoutTicks(todo.content)} />
            </span>
          </li>
        );
      })}
    </ul>
  );
  if (folding) {
    return (
      <details class="sagents-section sagents-fold" {...fold}>
        <summary>
          <Icon name="chevron" />
          {title}
        </summary>
        {list}
      </details>
    );
  }
  return (
    <section class="sagents-section">
      <div class="sagents-section-head">{title}</div>
      {todos.length > 0 ? list : <p class="sagents-empty">No todos yet.</p>}
    </section>
  );
}
