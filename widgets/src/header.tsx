// Who answers, what it is doing, and the way to stop it.
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button";
import { Faint } from "./faint";
import { count, seconds, tokens } from "./format";
import { Icon } from "./icons";
import { ModelButton, ModelList } from "./models";
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
  const [choosing, setChoosing] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const close = () => {
    setChoosing(false);
    button.current?.focus();
  };
  return (
    <>
      <div class="sagents-header">
        <span class="sagents-status" data-testid="status" data-status={status.name}>
          <span class="sagents-dot" />
          {status.label}
        </span>
        {/* When a run ended that its kernel did not survive, nobody knows. */}
        {run?.started != null && (run.ended !== null || store.open) && <Elapsed from={run.started} to={run.ended} />}
        <span class="sagents-title" title={state?.session_id}>
          {view === "run" ? "" : givenName(state?.session_id)}
        </span>
        {state?.model && <ModelButton model={state.model} open={choosing} toggle={() => setChoosing(!choosing)} button={button} />}
        {state && (view === "run" ? <UsageLine usage={usageOfRun(state, runId)} /> : <Meter state={state} />)}
        {error && <span class="sagents-error-text">{error}</span>}
        {status.active && (
          <Button
            kind="stop"
            data-testid="stop"
            disabled={busy}
            title="Stop the run (Esc twice)"
            onClick={() => ask("cancel", { run_id: view === "run" ? runId : undefined })}
          >
            <Icon name="stop" />
            {armed ? "Stop: Esc once more" : slow && !store.transport.heardWhileBusy ? "Busy: interrupt the kernel" : "Stop"}
          </Button>
        )}
      </div>
      {choosing && store.open && <ModelList close={close} />}
    </>
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
  return <Faint>{to === null ? seconds(Math.floor(passed)) : seconds(passed)}</Faint>;
}

function usageOfRun(state: ViewState, runId: string): Usage {
  return entriesOf(state, runId)
    .filter((entry) => entry.message.usage)
    .reduce((sum, entry) => addUsage(sum, entry.message.usage!), {} as Usage);
}

/** The tokens of the last call of the model: what it read, and what it wrote behind that. */
function contextOf({ entries }: ViewState): number {
  const last = entries.findLast(({ message }) => message.usage && inputOf(message.usage) > 0)?.message.usage;
  return last ? inputOf(last) + (last.output_tokens ?? 0) : 0;
}

const cachedOf = (usage: Usage) => (usage.cache_read_tokens ?? 0) + (usage.cache_write_tokens ?? 0);
const inputOf = (usage: Usage) => (usage.input_tokens ?? 0) + cachedOf(usage);

function costOf({ cost_usd: cost }: Usage): string {
  return cost === undefined ? "" : ` · $${cost.toFixed(cost < 0.1 ? 4 : 2)}`;
}

/** All that was read and written, in words. */
const sumsOf = (usage: Usage) => [
  `${count(inputOf(usage), "token")} in, of them ${cachedOf(usage).toLocaleString("en")} cached`,
  `${count(usage.output_tokens ?? 0, "token")} out`,
];

/** From this part of its context on a model has little room left. */
const NEARLY_FULL = 0.8;

/** How much of a model's context the conversation takes, and what it has cost. */
function Meter({ state }: { state: ViewState }) {
  const context = contextOf(state);
  const cost = costOf(state.usage);
  if (context === 0 && !cost) return null;
  const window = state.context_window;
  const part = window ? context / window : 0;
  const full = part >= NEARLY_FULL;
  const taken = window ? `${context.toLocaleString("en")} of the ${window.toLocaleString("en")} tokens` : count(context, "token");
  const title = [
    `The conversation takes ${taken} of the model's context.`,
    ...(full ? ["Little room is left: answers may be cut. A new conversation has all of it."] : []),
    "So far:",
    ...sumsOf(state.usage),
    ...(cost ? [cost.slice(3)] : []),
    ...(state.model === "demo" ? ["The demo's are estimates, and cost nothing."] : []),
  ];
  return (
    <span class={full ? "sagents-usage sagents-nearly-full" : "sagents-usage"} data-testid="meter" title={title.join("\n")}>
      {tokens(context)} context
      {window ? ` · ${Math.round(100 * part)} %${full ? " full" : ""}` : ""}
      {cost}
    </span>
  );
}

function UsageLine({ usage }: { usage: Usage }) {
  const input = inputOf(usage);
  const output = usage.output_tokens ?? 0;
  if (input + output === 0) return null;
  return (
    <span class="sagents-usage" title={sumsOf(usage).join("\n")}>
      {tokens(input)} in · {tokens(output)} out{costOf(usage)}
    </span>
  );
}
