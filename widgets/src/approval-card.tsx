// One call that waits: its name, its exact arguments, and the ways to answer.
import { useState } from "preact/hooks";
import { Arguments } from "./arguments";
import { Boundary, plainJson } from "./boundary";
import { EditForm } from "./edit-form";
import { Icon } from "./icons";
import { optionsOf, RespondForm } from "./respond-form";
import { Line, TextBlock, Visible } from "./text-block";
import { spelledOut } from "./visible";
import type { ActionRequest, Decision } from "./protocol";

type Props = {
  request: ActionRequest;
  /** The interrupt's type. */
  kind: string;
  /** The answer that was picked here and waits for the other calls' answers. */
  chosen?: Decision;
  sent: boolean;
  slow: boolean;
  error: string;
  onDecide: (decision: Decision) => void;
  onUndo: () => void;
};

const ALL = ["approve", "edit", "reject"];
/** What was picked, which the kernel may still refuse. */
const CHOICE: Record<Decision["type"], string> = {
  approve: "to approve",
  edit: "to approve with your changes",
  reject: "to reject",
  respond: "your answer",
};

export function ApprovalCard({ request, kind, chosen, sent, slow, error, onDecide, onUndo }: Props) {
  const [mode, setMode] = useState<"ask" | "edit" | "reject">("ask");
  const [message, setMessage] = useState("");
  const { tool_name, display_text, arguments: values = {}, numbers, allowed_decisions = ALL, digest = "" } = request;
  const may = (decision: string) => allowed_decisions.includes(decision);
  const locked = sent || chosen !== undefined;
  const reject = () => onDecide({ type: "reject", digest, message });
  const doubt = kind === "in_doubt";
  const unshown = (
    <>
      <TextBlock text={plainJson(values)} />
      {mode === "edit" && (
        <button type="button" class="sagents-button sagents-plain" onClick={() => setMode("ask")}>
          Cancel
        </button>
      )}
    </>
  );

  return (
    <div class="sagents-approval" data-testid="approval" data-tool={tool_name} role="group" aria-label={doubt ? `Whether ${spelledOut(tool_name)} ran` : `Approval of ${spelledOut(tool_name)}`}>
      <div class="sagents-approval-head">
        <Icon name={doubt ? "alert" : "hand"} />
        <span class="sagents-tool-name">
          <Line text={tool_name} />
        </span>
        <span class="sagents-tool-summary">
          <Line text={display_text ?? ""} />
        </span>
      </div>
      {doubt && (
        <p class="sagents-ask">
          Did this call run? The kernel ended while it was at work, so only you can find out. Look before you answer: what
          runs again may happen twice.
        </p>
      )}
      <Boundary key={mode} instead={unshown}>
        {mode === "edit" ? (
          <EditForm
            values={values}
            numbers={numbers}
            disabled={locked}
            onSave={(edited) => onDecide({ type: "edit", digest, ...edited })}
            onCancel={() => setMode("ask")}
          />
        ) : (
          <Request request={request} />
        )}
      </Boundary>
      {may("respond") && (
        <RespondForm
          options={optionsOf(kind, values)}
          values={values}
          disabled={locked}
          onAnswer={(answer) => onDecide({ type: "respond", digest, answer })}
        />
      )}
      {mode === "reject" && (
        <div class="sagents-reject">
          <input
            data-testid="reject-message"
            aria-label="Why not? (optional, told to the agent)"
            placeholder="Why not? (optional, told to the agent)"
            value={message}
            disabled={locked}
            ref={(input) => input?.focus({ preventScroll: true })}
            onInput={(event) => setMessage(event.currentTarget.value)}
            onKeyDown={(event) => {
              event.stopPropagation();
              if (event.key === "Enter" && !event.isComposing) reject();
              if (event.key === "Escape") setMode("ask");
            }}
          />
          <button type="button" class="sagents-button sagents-danger" data-testid="reject-confirm" disabled={locked} onClick={reject}>
            Reject
          </button>
          <button type="button" class="sagents-button sagents-plain" disabled={locked} onClick={() => setMode("ask")}>
            Cancel
          </button>
        </div>
      )}
      {mode === "ask" && ALL.some(may) && (
        <div class="sagents-actions">
          {may("approve") && (
            <button
              type="button"
              class="sagents-button sagents-primary"
              data-testid="approve"
              disabled={locked}
              onClick={() => onDecide({ type: "approve", digest })}
            >
              <Icon name="check" />
              Approve
            </button>
          )}
          {may("edit") && (
            <button type="button" class="sagents-button" data-testid="edit" disabled={locked} onClick={() => setMode("edit")}>
              <Icon name="pencil" />
              Edit
            </button>
          )}
          {may("reject") && (
            <button type="button" class="sagents-button" data-testid="reject" disabled={locked} onClick={() => setMode("reject")}>
              <Icon name="cross" />
              Reject
            </button>
          )}
        </div>
      )}
      {chosen && !sent && (
        <p class="sagents-chosen">
          You chose {CHOICE[chosen.type]}; sent when the other calls are answered too.
          <button type="button" class="sagents-link" onClick={onUndo}>
            Change
          </button>
        </p>
      )}
      {slow && <p class="sagents-faint">The kernel is busy; the answer counts when it listens again.</p>}
      {error && (
        <p class="sagents-error-text" role="alert" data-testid="approval-error">
          <Icon name="alert" />
          {error}
        </p>
      )}
    </div>
  );
}

/** A question reads as one; whatever would be run is shown with all it is given. */
function Request({ request }: { request: ActionRequest }) {
  const { tool_name, arguments: values = {}, numbers, allowed_decisions = ALL } = request;
  const { question, context } = values;
  if (allowed_decisions.includes("approve") || typeof question !== "string") {
    return <Arguments tool={tool_name} values={values} numbers={numbers} />;
  }
  return (
    <>
      <p class="sagents-ask">
        <Visible text={question} />
      </p>
      {typeof context === "string" && (
        <p class="sagents-ask-context">
          <Visible text={context} />
        </p>
      )}
    </>
  );
}
