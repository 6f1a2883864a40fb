// Who answers, what it is doing, and the way to stop it.
import { useEffect, useState } from "preact/hooks";
import { count, seconds, tokens } from "./format";
import { Icon } from "./icons";
import { addUsage, entriesOf, type Usage, type ViewState } from "./protocol";
import type { Status } from "./status";
import { useRequest, useStore } from "./use-store";

type Props = {
  state: ViewState | null;
  status: Status;
  view: string;
  runId: string;
  /** Escape was pressed once: once more stops the run. */
  armed: boolean;
};

export function Header({ state, status, view, runId, armed }: Props) {
  const store = useStore();
  const { ask, busy, slow, error } = useRequest();
  const run = view === "run" ? state?.runs[runId] : undefined;
  return (
    <header class="sagents-header">
      <span class="sagents-status" data-testid="status" data-status={status.name}>
        <span class="sagents-dot" />
        {status.label}
      </span>
      {run?.started != null && <Elapsed from={run.started} to={run.ended} />}
      <span class="sagents-title" title={state?.session_id}>
        {view === "run" ? "" : givenName(state?.session_id)}
      </span>
      {state?.model && (
        <span class="sagents-model" title={`Model: ${state.model}`}>
          {state.model}
        </span>
      )}
      {state && <UsageLine usage={view === "run" ? usageOfRun(state, runId) : state.usage} />}
      {error && <span class="sagents-error-text">{error}</span>}
      {status.active && (
        <button
          type="button"
          class="sagents-button sagents-stop"
          data-testid="stop"
          disabled={busy}
          title="Stop the run (Esc twice)"
          onClick={() => ask("cancel", { run_id: view === "run" ? runId : undefined })}
        >
          <Icon name="stop" />
          {armed ? "Stop: Esc once more" : slow && !store.heardWhileBusy ? "Busy: interrupt the kernel" : "Stop"}
        </button>
      )}
    </header>
  );
}

/** A session's name, if somebody gave it one: the made-up ones say nothing to a person. */
export const givenName = (id = "") => (/^session-[0-9a-f]{12}$/.test(id) ? "" : id);

function Elapsed({ from, to }: { from: number; to: number | null }) {
  const [now, setNow] = useState(Date.now() / 1000);
  useEffect(() => {
    if (to !== null) return;
    const timer = setInterval(() => setNow(Date.now() / 1000), 1000);
    return () => clearInterval(timer);
  }, [to]);
  // The kernel's clock may be ahead of the page's.
  const passed = Math.max(0, (to ?? now) - from);
  if (to === null && passed < 1) return null;
  return <span class="sagents-faint">{to === null ? seconds(Math.floor(passed)) : seconds(passed)}</span>;
}

function usageOfRun(state: ViewState, runId: string): Usage {
  return entriesOf(state, runId)
    .filter((entry) => entry.message.usage)
    .reduce((sum, entry) => addUsage(sum, entry.message.usage!), {} as Usage);
}

function UsageLine({ usage }: { usage: Usage }) {
  const cached = (usage.cache_read_tokens ?? 0) + (usage.cache_write_tokens ?? 0);
  const input = (usage.input_tokens ?? 0) + cached;
  const output = usage.output_tokens ?? 0;
  if (input + output === 0) return null;
  const cost = usage.cost_usd === undefined ? "" : ` · $${usage.cost_usd.toFixed(usage.cost_usd < 0.1 ? 4 : 2)}`;
  const title = [
    `${count(input, "token")} in, of them ${cached.toLocaleString("en")} cached`,
    `${count(output, "token")} out`,
  ].join("\n");
  return (
    <span class="sagents-usage" title={title}>
      {tokens(input)} in · {tokens(output)} out{cost}
    </span>
  );
}
