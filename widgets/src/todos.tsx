// The agent's list of things to do.
import { Icon, type IconName } from "./icons";
import { Visible } from "./text-block";
import type { Todo } from "./protocol";

const icons: Record<string, IconName> = {
  pending: "circle",
  in_progress: "busy",
  completed: "done",
  cancelled: "skip",
};
const words: Record<string, string> = {
  pending: "To do",
  in_progress: "In progress",
  completed: "Done",
  cancelled: "Dropped",
};

type Props = {
  todos: Todo[];
  /** Whether a run is at work: nothing turns when nobody does it. */
  busy: boolean;
  folding?: boolean;
};

export function Todos({ todos, busy, folding = false }: Props) {
  const done = todos.filter((todo) => todo.status === "completed").length;
  const title = (
    <>
      <span class="sagents-section-title">Todos</span>
      <span class="sagents-faint">{todos.length > 0 && `${done} of ${todos.length}`}</span>
      <progress class="sagents-progress" value={done} max={todos.length || 1} aria-hidden="true" />
    </>
  );
  const list = (
    <ul class="sagents-todos" aria-label="Todos">
      {todos.map((todo, index) => {
        const status = todo.status ?? "pending";
        return (
          <li key={todo.id ?? index} class="sagents-todo" data-testid="todo" data-status={status}>
            <Icon name={icons[status] ?? "circle"} turning={busy && status === "in_progress"} />
            <span class="sagents-sr">{words[status]}: </span>
            <span>
              <Visible text={todo.content} />
            </span>
          </li>
        );
      })}
    </ul>
  );
  if (folding) {
    return (
      <details class="sagents-section sagents-fold" open>
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
