// After an answer that is none, or not the whole one: the way to ask for it again. And after a pause, to go on.
import { Button } from "./button";
import { ErrorText } from "./error-text";
import { Icon } from "./icons";
import type { ViewState } from "./protocol";
import { goesOn } from "./status";
import { useRequest, useStore } from "./use-store";

const CUT = new Set(["max_tokens", "context_window", "refusal"]);

const WAYS = {
  again: ["Try again", "Ask the model again for this answer"],
  continue: ["Continue", "Go on with what is left to do"],
  // Calls that were stopped are answered, and the model is told.
  stopped: ["Continue", "Ask the model to go on; what was stopped does not run again unless it asks for it"],
} as const;

/** How to go on where something is left to do, or the last answer is missing, failed, or was stopped or cut. */
export function wayOn({ status, entries }: ViewState): keyof typeof WAYS | null {
  if (goesOn(status)) return null;
  if (status === "paused") return "continue";
  const last = entries.at(-1)?.message;
  if (!last) return null;
  if (last.role === "assistant") return last.error != null || CUT.has(last.stop_reason ?? "") ? "again" : null;
  if (status !== "error" && status !== "cancelled") return null;
  return (last.parts ?? []).some((part) => part.type === "tool_result" && part.status === "cancelled") ? "stopped" : "again";
}

type Props = { state: ViewState; /** The last run, where it is to go on as itself. */ runId?: string };

export function Retry({ state, runId }: Props) {
  const store = useStore();
  const { ask, busy, slow, error } = useRequest();
  const way = wayOn(state);
  if (!store.open || !way) return null;
  const [label, title] = WAYS[way];
  return (
    <div class="sagents-retry">
      <Button
        data-testid="retry"
        disabled={busy}
        title={title}
        onClick={() => ask("retry", { run_id: runId })}
      >
        <Icon name="again" />
        {slow && !store.transport.heardWhileBusy ? "The kernel is busy" : label}
      </Button>
      <ErrorText text={error} />
    </div>
  );
}
