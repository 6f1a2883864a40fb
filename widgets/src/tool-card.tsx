// One tool call in one place: the question as long as it waits for a person, then what it is and
// how it went in a line, with what it was given and gave inside.
import { useContext, useState } from "preact/hooks";
import { ApprovalCard } from "./approval-card";
import { Arguments, summaryOf } from "./arguments";
import { BareButton } from "./button";
import { isAgent } from "./calls";
import { changeOf } from "./changes";
import { Counts } from "./diff";
import { ErrorText } from "./error-text";
import { Faint, FaintLine } from "./faint";
import { count, oneLine, seconds } from "./format";
import { Icon, type IconName } from "./icons";
import { MemoryContext, useFold } from "./memory";
import { Problem } from "./problem";
import { useAsked, type Asked } from "./question";
import { RichText } from "./rich-text";
import { Line, TextBlock, Visible } from "./text-block";
import { OtherPart } from "./turns";
import { useRequest } from "./use-store";
import { exactJson } from "./visible";
import { AgentStream, InsideAgent } from "./agent-stream";
import type { AgentState, Decided, Json, JsonObject, ToolCall, ToolInfo, ToolResult } from "./protocol";

/** What is known of a call. */
export type CallProps = {
  call: ToolCall;
  info?: ToolInfo;
  decided?: Decided;
  result?: ToolResult;
  /** Whether nothing of its run can be on its way. */
  over: boolean;
  /** What the sub-agent that it is says and does. */
  agent?: AgentState;
};
type Props = CallProps & { /** Where it stands in the conversation. */ place: string };

const icons: Record<string, IconName> = {
  pending: "circle",
  running: "busy",
  completed: "done",
  failed: "failed",
  declined: "skip",
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
  declined: "Not done",
  rejected: "Rejected",
  cancelled: "Stopped",
  skipped: "Skipped",
  interrupted: "Needs approval",
  unfinished: "Unfinished",
  answer: "Needs an answer",
  doubt: "Did it run?",
};
const WAITING = ["interrupted", "answer", "doubt"];

/** Whether a call of that status waits for a person. */
export const isWaiting = (status: string) => WAITING.includes(status);

export function statusOfCall({ call, info, decided, result, over }: CallProps): string {
  if (info && !(info.status === "running" && over)) return info.status;
  if (result?.is_interrupt) return over ? "interrupted" : "pending";
  if (result) return result.status ?? (result.is_error ? "failed" : "completed");
  if (call.error) return "failed";
  // Between the answer and the run that goes on, nothing has happened yet.
  return over && !decided ? "unfinished" : "pending";
}

export function ToolCard(props: Props) {
  const { call, result } = props;
  const status = statusOfCall(props);
  const about = useAsked(call.id);
  const asked = isWaiting(status) ? about : undefined;
  return (
    <div class={asked?.next ? "sagents-row sagents-in-sight" : "sagents-row"} data-testid="tool-card" data-tool={call.name} data-status={status}>
      {asked ? (
        <ApprovalCard key={asked.request.digest} asked={asked} />
      ) : (
        <CallFold {...props} status={status} />
      )}
      <Images result={result} />
    </div>
  );
}

/** A call that waits and has no place in the conversation, such as a sub-agent's. */
export function LooseCard({ asked }: { asked: Asked }) {
  return (
    <div class={asked.next ? "sagents-row sagents-in-sight" : "sagents-row"}>
      <ApprovalCard asked={asked} />
    </div>
  );
}

function CallFold({ call, info, decided, result, agent: stream, over, place, status }: Props & { status: string }) {
  const [open, fold] = useFold(place);
  const { befores } = useContext(MemoryContext);
  const progress = status === "running" ? info?.progress : undefined;
  const ran = asRun(call, result, decided);
  const agent = isAgent(call.name);
  const word = wordOf(status, decided, ran !== call);
  const before = befores.get(call.id)?.text;
  const edits = ran.name === "edit_file" && changeOf(ran.name, ran.arguments ?? {});
  return (
    <details class={`sagents-tool sagents-fold${agent ? " sagents-agent" : ""}`} {...fold}>
      <summary>
        <span class="sagents-tool-icon" title={words[status]}>
          <Icon name={icons[status] ?? "circle"} turning={status === "running"} />
        </span>
        <span class="sagents-sr">{words[status] ?? status}: </span>
        <span class="sagents-tool-name">
          <Line text={call.name} />
        </span>
        <span class="sagents-tool-summary">
          <Line text={(!agent && progress?.text) || info?.display_text || ran.display_text || summaryOf(ran)} />
        </span>
        {progress?.fraction != null && (
          <progress class="sagents-progress" value={progress.fraction} max={1} aria-label="Progress" />
        )}
        {edits && <Counts from={edits.from} to={edits.to} />}
        {word && <span class="sagents-tool-word">{word}</span>}
        {status !== "running" && !!info?.duration && <Faint>{seconds(info.duration)}</Faint>}
        {agent && !open && <AgentNews progress={progress?.text} result={result} />}
        <Icon name="chevron" />
      </summary>
      {open && (
        <div class="sagents-tool-body">
          <Arguments
            tool={call.name}
            values={ran.arguments ?? {}}
            numbers={{ ...ran.numbers, ...result?.numbers }}
            defaults={result?.metadata?.defaults as JsonObject | undefined}
            before={before}
          />
          {ran !== call && (
            <div data-testid="before-edit">
              <div class="sagents-label">Before it was edited</div>
              <Arguments tool={call.name} values={call.arguments ?? {}} numbers={call.numbers} before={before} />
            </div>
          )}
          {decided && <Outcome decided={decided} />}
          {stream && <AgentStream agent={stream} place={place} over={over || status !== "running"} answer={result} />}
          {call.error && <Problem text={call.error} />}
          <TaskOutcome task={taskIn(result?.metadata?.task)} />
          {result && !result.is_interrupt && <Result result={result} rich={agent && !result.is_error} />}
        </div>
      )}
    </details>
  );
}

/** Beside the call, what is not plain: how it failed, and what a person said to it. */
function wordOf(status: string, decided: Decided | undefined, edited: boolean): string {
  if (edited || decided?.type === "edit") return status === "completed" ? "Edited" : `Edited, ${(words[status] ?? status).toLowerCase()}`;
  if (decided?.type === "approve" && ["completed", "running"].includes(status)) return decided.by === ALWAYS ? "Always allowed" : "Approved";
  return !decided && ["completed", "running", "pending"].includes(status) ? "" : (words[status] ?? status);
}

/** By whom a call is approved that nobody was asked about. */
const ALWAYS = "always";
const VERBS: Record<string, string> = { approve: "Approved", edit: "Approved with changes", reject: "Rejected", respond: "Answered" };

/** What was decided, and by whom. */
function Outcome({ decided: { type, by, message, always } }: { decided: Decided }) {
  return (
    <p class="sagents-outcome" data-testid="outcome">
      <Icon name={type === "reject" ? "skip" : "check"} />
      <span>
        {by === ALWAYS ? (
          "Always allowed in this conversation"
        ) : (
          <>
            {VERBS[type] ?? type} by <Line text={by} />
            {always === true && ", as all calls of this tool from here on"}
          </>
        )}
        {typeof message === "string" && message && (
          <>
            : <Visible text={message} />
          </>
        )}
      </span>
    </p>
  );
}

type Task = { id: string; state: string; seconds?: number; tokens?: number; artifacts?: string[] };

/** The task that a result's metadata speak of; a tool of somebody's own may mean another thing by the word. */
function taskIn(found: Json | undefined): Task | undefined {
  const { id, state, artifacts = [] } = (found ?? {}) as Partial<Task>;
  return typeof id === "string" && typeof state === "string" && Array.isArray(artifacts) ? (found as Task) : undefined;
}

/** How a task of another agent went, and what it made. */
function TaskOutcome({ task }: { task?: Task }) {
  if (!task) return null;
  const took = [task.seconds != null && seconds(task.seconds), !!task.tokens && count(task.tokens, "token")].filter(Boolean).join(", ");
  return (
    <p class="sagents-outcome" data-testid="task">
      <Icon name={task.state === "completed" ? "done" : "circle"} />
      <span>
        <Line text={`${task.id}: ${task.state.replace("_", " ")}${took && ` (${took})`}`} />
        {!!task.artifacts?.length && <Line text={`; it made ${task.artifacts.join(", ")}`} />}
      </span>
    </p>
  );
}

/** What a sub-agent is at, or the first that it answered. */
function AgentNews({ progress = "", result }: { progress?: string; result?: ToolResult }) {
  const { content = "" } = result && !result.is_interrupt ? result : {};
  const text = progress || (typeof content === "string" ? oneLine(content.replace(/[*`#]+/g, ""), 200) : "");
  if (!text) return null;
  return (
    <span class="sagents-agent-news">
      <Line text={text} />
    </span>
  );
}

/** The call with the arguments that it is run with: somebody may have edited them. */
function asRun(call: ToolCall, result?: ToolResult, decided?: Decided): ToolCall {
  const meant = decided?.type === "edit" ? decided.arguments : undefined;
  const edited = result && !result.is_interrupt ? result.metadata?.edited_arguments : meant;
  if (!edited || typeof edited !== "object" || Array.isArray(edited)) return call;
  return { ...call, arguments: edited, numbers: result?.numbers, display_text: undefined };
}

function Result({ result, rich }: { result: ToolResult; rich: boolean }) {
  const [whole, setWhole] = useState<ToolResult | null>(null);
  const { ask, busy, error } = useRequest();
  const inside = useContext(InsideAgent);
  const { content, is_error, shortened } = whole ?? result;
  // What was stopped, rejected or not done went as a person wanted: that is no error.
  const failed = is_error && (result.status ?? "failed") === "failed";
  const parts = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
  const readAll = async () => {
    const reply = await ask("read_result", { tool_call_id: result.tool_call_id });
    if (reply?.result) setWhole(reply.result);
  };
  return (
    <div class={failed ? "sagents-result sagents-result-error" : "sagents-result"}>
      <div class="sagents-label">{failed ? "Error" : "Result"}</div>
      {parts.map((part, index) => {
        if (part.type === "text") {
          if (failed) return <Problem key={index} text={part.text} />;
          return rich ? <RichText key={index} text={part.text} /> : <TextBlock key={index} text={part.text} />;
        }
        if (part.type === "json") return <TextBlock key={index} text={exactJson(part.data)} />;
        return <OtherPart key={index} part={part} />;
      })}
      {shortened && inside && <FaintLine>The beginning of {count(shortened, "character")}</FaintLine>}
      {shortened && !inside && (
        <BareButton class="sagents-link" disabled={busy} onClick={readAll}>
          Show all {count(shortened, "character")}
        </BareButton>
      )}
      <ErrorText text={error} />
    </div>
  );
}

const MOST_IMAGES = 4;

/** Images are seen without a click: they are what was asked for. */
function Images({ result }: { result?: ToolResult }) {
  const images = (result?.images ?? []).filter(
    ({ media_type, data }) => /^image\/(?:png|jpeg|gif|webp)$/.test(media_type) && /^[a-z\d+/]+={0,2}$/i.test(data),
  );
  return (
    <>
      {images.slice(0, MOST_IMAGES).map(({ media_type, data }, index) => (
        <img
          key={index}
          class="sagents-image"
          data-testid="result-image"
          alt={`Image ${index + 1} of the result of ${result!.name}`}
          src={`data:${media_type};base64,${data}`}
        />
      ))}
    </>
  );
}
