// One tool call: what it is and how it went in a line, what it was given and gave inside.
import { useState } from "preact/hooks";
import { Arguments } from "./arguments";
import { count, oneLine, seconds } from "./format";
import { Icon, type IconName } from "./icons";
import { Line, TextBlock } from "./text-block";
import { OtherPart } from "./turns";
import { useRequest } from "./use-store";
import { canonicalJson, placeIn } from "./visible";
import type { ToolCall, ToolInfo, ToolResult } from "./protocol";

type Props = { call: ToolCall; info?: ToolInfo; result?: ToolResult; over: boolean };

const icons: Record<string, IconName> = {
  pending: "circle",
  running: "busy",
  completed: "done",
  failed: "failed",
  rejected: "skip",
  cancelled: "stopped",
  skipped: "skip",
  interrupted: "hand",
  unfinished: "stopped",
  answer: "hand",
  doubt: "alert",
};
const words: Record<string, string> = {
  pending: "Waiting",
  running: "Running",
  completed: "Done",
  failed: "Failed",
  rejected: "Rejected",
  cancelled: "Stopped",
  skipped: "Skipped",
  interrupted: "Needs approval",
  unfinished: "Unfinished",
  answer: "Needs an answer",
  doubt: "Did it run?",
};

export function statusOfCall({ call, info, result, over }: Props): string {
  if (info && !(info.status === "running" && over)) return info.status;
  if (result?.is_interrupt) return over ? "interrupted" : "pending";
  if (result) return result.is_error ? "failed" : "completed";
  if (call.error) return "failed";
  return over ? "unfinished" : "pending";
}

export function ToolCard(props: Props) {
  const { call, info, result } = props;
  const [open, setOpen] = useState(false);
  const status = statusOfCall(props);
  const progress = status === "running" ? info?.progress : undefined;
  const ran = asRun(call, result);
  return (
    <details
      class="sagents-tool sagents-fold"
      data-testid="tool-card"
      data-tool={call.name}
      data-status={status}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>
        <span class="sagents-tool-icon" title={words[status]}>
          <Icon name={icons[status] ?? "circle"} turning={status === "running"} />
        </span>
        <span class="sagents-sr">{words[status] ?? status}: </span>
        <span class="sagents-tool-name">
          <Line text={call.name} />
        </span>
        <span class="sagents-tool-summary">
          <Line text={progress?.text || info?.display_text || summary(ran)} />
        </span>
        {progress?.fraction != null && (
          <progress class="sagents-progress" value={progress.fraction} max={1} aria-label="Progress" />
        )}
        {ran !== call && <span class="sagents-tool-word">Edited</span>}
        {status !== "completed" && status !== "running" && status !== "pending" && (
          <span class="sagents-tool-word">{words[status] ?? status}</span>
        )}
        {status !== "running" && !!info?.duration && <span class="sagents-faint">{seconds(info.duration)}</span>}
        <Icon name="chevron" />
      </summary>
      {open && (
        <div class="sagents-tool-body">
          <Arguments tool={call.name} values={ran.arguments ?? {}} numbers={ran.numbers} />
          {ran !== call && (
            <div data-testid="before-edit">
              <div class="sagents-label">Before it was edited</div>
              <Arguments tool={call.name} values={call.arguments ?? {}} numbers={call.numbers} />
            </div>
          )}
          {call.error && <p class="sagents-error-text">{call.error}</p>}
          {result && !result.is_interrupt && <Result result={result} />}
        </div>
      )}
    </details>
  );
}

/** The call with the arguments that it was run with: somebody may have edited them. */
function asRun(call: ToolCall, result?: ToolResult): ToolCall {
  const edited = result?.metadata?.edited_arguments;
  if (!edited || typeof edited !== "object" || Array.isArray(edited)) return call;
  return { ...call, arguments: edited, numbers: result.numbers };
}

/** The arguments in a line: the values say more than their names. */
function summary({ arguments: values = {}, numbers }: ToolCall): string {
  const shown = Object.entries(values).map(([name, value]) =>
    typeof value === "string" ? value : canonicalJson(value, 0, numbers, placeIn("", name)),
  );
  return oneLine(shown.join(" · "), 120);
}

function Result({ result }: { result: ToolResult }) {
  const [whole, setWhole] = useState<ToolResult | null>(null);
  const { ask, busy, error } = useRequest();
  const { content, is_error, shortened } = whole ?? result;
  const parts = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
  const readAll = async () => {
    const reply = await ask("read_result", { tool_call_id: result.tool_call_id });
    if (reply?.result) setWhole(reply.result);
  };
  return (
    <div class={is_error ? "sagents-result sagents-result-error" : "sagents-result"}>
      <div class="sagents-label">{is_error ? "Error" : "Result"}</div>
      {parts.map((part, index) => {
        if (part.type === "text") return <TextBlock key={index} text={part.text} />;
        if (part.type === "json") return <TextBlock key={index} text={canonicalJson(part.data)} />;
        return <OtherPart key={index} part={part} />;
      })}
      {shortened && (
        <button type="button" class="sagents-link" disabled={busy} onClick={readAll}>
          Show all {count(shortened, "character")}
        </button>
      )}
      {error && <p class="sagents-error-text">{error}</p>}
    </div>
  );
}
