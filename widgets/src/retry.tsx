// After an answer that is none, or not the whole one: the way to ask for it again. And after a pause, to go on.
import { Button } from "./button";
import { ErrorText } from "./error-text";
import { Icon } from "./icons";
import type { ViewState } from "./protocol";
import { goesOn } from "./status";
import { useRequest, useStore } from "./use-store";

const CUT = new Set(["max_tokens", "context_window", "refusal"]);

/** Whether something is left to do, or the last answer is missing, failed, or was stopped or cut. */
export function canRetry({ status, entries }: ViewState): boolean {
  if (goesOn(status)) return false;
  if (status === "paused") return true;
  const last = entries.at(-1)?.message;
  if (!last) return false;
  if (last.role === "assistant") return last.error != null || CUT.has(last.stop_reason ?? "");
  // Calls that were stopped are answered: to ask for the next answer would not call them again.
  return status === "error" || (status === "cancelled" && !(last.parts ?? []).some((part) => part.type === "tool_result" && part.status === "cancelled"));
}

type Props = { state: ViewState; /** The last run, where it is to go on as itself. */ runId?: string };

export function Retry({ state, runId }: Props) {
  const store = useStore();
  const { ask, busy, slow, error } = useRequest();
  if (!store.open || !canRetry(state)) return null;
  const paused = state.status === "paused";
  return (
    <div class="sagents-retry">
      <Button
        data-testid="retry"
        disabled={busy}
        title={paused ? "Go on with what is left to do" : "Ask the model again for this answer"}
        onClick={() => ask("retry", { run_id: runId })}
      >
        <Icon name="again" />
        {slow && !store.transport.heardWhileBusy ? "The kernel is busy" : paused ? "Continue" : "Try again"}
      </Button>
      <ErrorText text={error} />
    </div>
  );
}
