// What waits for a person. The answers to all waiting calls go out in one message, because the
// kernel takes an interrupt's decisions together or not at all.
import { useState } from "preact/hooks";
import { ApprovalCard } from "./approval-card";
import { Icon } from "./icons";
import { undecided, wants, type Decision, type Interrupt, type ViewState } from "./protocol";
import { Visible } from "./text-block";
import { spelledOut } from "./visible";
import { useRequest } from "./use-store";

export function Approvals({ state, alone = false }: { state: ViewState; alone?: boolean }) {
  const { interrupt } = state;
  const names = undecided(state).map((request) => spelledOut(request.tool_name));
  return (
    <section class={alone ? "sagents-approvals" : "sagents-approvals sagents-docked"} aria-label="Approvals">
      {/* Announced as soon as there is one; the card itself is too long to be read out. */}
      <div class="sagents-sr" role="alert">
        {interrupt && (names.length > 0 ? `${headline(state, interrupt)}: ${names.join(", ")}` : interrupt.message)}
      </div>
      {interrupt && <Question key={interrupt.id || interrupt.run_id} state={state} interrupt={interrupt} />}
      {alone && !interrupt && <p class="sagents-empty">Nothing waits for approval.</p>}
    </section>
  );
}

/** For those who hear the page: what kind of answer is asked for. */
function headline(state: ViewState, interrupt: Interrupt): string {
  if (interrupt.type === "in_doubt") return "It is not known whether this ran";
  const approval = undecided(state).some((request) => wants(interrupt, request) === "approval");
  return approval ? "Approval needed" : "An answer is needed";
}

function Question({ state, interrupt }: { state: ViewState; interrupt: Interrupt }) {
  const { ask, busy, slow, error, setError } = useRequest();
  const [chosen, setChosen] = useState<Record<string, Decision>>({});
  const [sent, setSent] = useState(false);
  // The call that the error is about.
  const [refused, setRefused] = useState("");
  const waiting = undecided(state);

  const decide = async (given: Record<string, Decision>, by: string) => {
    const decisions = { ...chosen, ...given };
    setChosen(decisions);
    if (refused in given) setError("");
    if (!waiting.every((request) => request.tool_call_id in decisions)) return;
    setSent(true);
    await ask("decide", { interrupt_id: interrupt.id ?? "", decisions }, ({ kind, toolCallId }) => {
      const { [toolCallId]: unfit, ...others } = decisions;
      setSent(false);
      setRefused(unfit ? toolCallId : by);
      // What does not fit leaves the other answers as they are; all else may have changed the question.
      setChosen(unfit && kind === "InvalidDecision" ? others : {});
    });
  };
  const approveAll = () => {
    const open = waiting.filter((request) => !(request.tool_call_id in chosen));
    const all = open.map((r) => [r.tool_call_id, { type: "approve", digest: r.digest ?? "" }] as const);
    void decide(Object.fromEntries(all), waiting[0]!.tool_call_id);
  };
  const open = waiting.filter((request) => !(request.tool_call_id in chosen));

  return (
    <>
      {interrupt.message && interrupt.type !== "in_doubt" && (
        <p class="sagents-question">
          <Icon name="hand" />
          <Visible text={interrupt.message} />
        </p>
      )}
      {open.length > 1 && open.every((request) => wants(interrupt, request) === "approval") && (
        <div class="sagents-all">
          <span>{open.length} calls need approval; they go ahead together.</span>
          <button type="button" class="sagents-button" data-testid="approve-all" disabled={sent} onClick={approveAll}>
            Approve all
          </button>
        </div>
      )}
      {waiting.map((request) => (
        <ApprovalCard
          key={request.tool_call_id}
          request={request}
          kind={interrupt.type}
          chosen={chosen[request.tool_call_id]}
          sent={sent}
          slow={slow && busy}
          error={refused === request.tool_call_id ? error : ""}
          onDecide={(decision) => decide({ [request.tool_call_id]: decision }, request.tool_call_id)}
          onUndo={() => {
            const { [request.tool_call_id]: _, ...others } = chosen;
            setChosen(others);
          }}
        />
      ))}
    </>
  );
}
