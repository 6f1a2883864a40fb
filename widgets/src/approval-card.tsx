// One call that waits: its name, all that it is given, and the ways to answer.
import { useCallback, useContext, useEffect, useRef, useState } from "preact/hooks";
import { Arguments, summaryOf } from "./arguments";
import { useBefore } from "./before";
import { Boundary, plainJson } from "./boundary";
import { BareButton, Button } from "./button";
import { EditForm } from "./edit-form";
import { FaintLine } from "./faint";
import { Icon, type IconName } from "./icons";
import { LineForm } from "./line-form";
import { MemoryContext, type Answer } from "./memory";
import { optionsOf, RespondForm } from "./respond-form";
import { Cuts, Line, TextBlock, Visible } from "./text-block";
import { useStore } from "./use-store";
import { spelledOut } from "./visible";
import type { ActionRequest, Decision } from "./protocol";
import type { Asked } from "./question";

const ALL = ["approve", "edit", "reject"];
const ICONS: Record<string, IconName> = { approve: "check", edit: "pencil", reject: "cross" };
const keyOf = (decision: string) => decision[0]!.toUpperCase();
/** What was picked, which the kernel may still refuse. */
const CHOICE: Record<Decision["type"], string> = {
  approve: "to approve",
  edit: "to approve with your changes",
  reject: "to reject",
  respond: "your answer",
};

export function ApprovalCard({ asked }: { asked: Asked }) {
  const { request, kind, chosen, sent, slow, error, decide, undo } = asked;
  const store = useStore();
  const [mode, setMode] = useState<"ask" | "edit" | "reject">("ask");
  const [cuts, setCuts] = useState(0);
  const card = useRef<HTMLDivElement>(null);
  const body = useRef<HTMLDivElement>(null);
  const before = useBefore(request);
  const { tool_name, display_text, arguments: values = {}, numbers, defaults, parameters, allowed_decisions = ALL, digest = "" } = request;
  const { answers } = useContext(MemoryContext);
  const [begun, setBegun] = useState<Answer>(() => answers.get(digest) ?? { draft: null, reason: "", text: "" });
  const { draft, reason, text } = begun;
  const begin = (changed: Partial<Answer>) => {
    answers.set(digest, { ...begun, ...changed });
    setBegun(answers.get(digest)!);
  };
  // What is refused is still in the form, and still to be kept.
  useEffect(() => {
    if (sent) answers.delete(digest);
    else if (draft || reason || text) answers.set(digest, begun);
  }, [sent]);
  const may = (decision: string) => allowed_decisions.includes(decision);
  const locked = sent || chosen !== undefined;
  // What is answered no more shows what it is given, but for this.
  const line = chosen?.type === "edit" ? summaryOf(chosen) : locked ? display_text || summaryOf(request) : display_text === values.question ? "" : (display_text ?? "");
  const doubt = kind === "in_doubt";
  const count = useCallback((more: 1 | -1) => setCuts((cuts) => cuts + more), []);
  // Nobody approves what they could not have seen.
  const unseen = cuts > 0;
  const approve = (always = false) => decide({ type: "approve", digest, ...(always ? { always } : {}) });
  const back = () => {
    setMode("ask");
    body.current?.focus({ preventScroll: true });
  };
  // The button that was pressed is gone, and the focus with it.
  useEffect(() => {
    if (mode === "edit") body.current!.querySelector<HTMLElement>("[data-testid=edit-field]")?.focus({ preventScroll: true });
  }, [mode]);

  const blocked = (decision: string) => locked || (unseen && decision === "approve");
  const press = (decision: string) => (decision === "approve" ? approve() : setMode(decision as typeof mode));
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape" && mode !== "ask" && !event.isComposing && !locked) {
      event.preventDefault();
      return back();
    }
    const typing = event.target instanceof Element && event.target.closest("textarea, input");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat || mode !== "ask" || locked) return;
    const decision = ALL.find((decision) => keyOf(decision) === event.key.toUpperCase());
    if (!decision || !may(decision) || blocked(decision)) return;
    event.preventDefault();
    press(decision);
  };
  // In the transcript the keys are those of the card that stays in sight, but for what is in another one.
  useEffect(() => {
    const own = card.current!;
    const heard = (asked.next && own.closest<HTMLElement>(".sagents-transcript")) || own;
    const hear = (event: KeyboardEvent) => {
      const within = (event.target as Element).closest(".sagents-approval");
      if (!within || within === own) onKeyDown(event);
    };
    heard.addEventListener("keydown", hear);
    return () => heard.removeEventListener("keydown", hear);
  });

  const unshown = (
    <>
      <TextBlock text={plainJson({ ...values, ...defaults })} />
      {mode === "edit" && (
        <Button kind="plain" onClick={back}>
          Cancel
        </Button>
      )}
    </>
  );

  return (
    <div
      class={asked.waiting > 1 ? "sagents-approval sagents-approval-of-several" : "sagents-approval"}
      data-testid="approval"
      data-tool={tool_name}
      role="group"
      aria-label={doubt ? `Whether ${spelledOut(tool_name)} ran` : `Approval of ${spelledOut(tool_name)}`}
      data-answered={locked || undefined}
      tabIndex={-1}
      ref={card}
    >
      <div class="sagents-approval-head">
        <Icon name={doubt ? "alert" : "hand"} />
        <span class="sagents-tool-name">
          <Line text={tool_name} />
        </span>
        <span class="sagents-tool-summary">
          <Line text={line} />
        </span>
      </div>
      <div class="sagents-approval-body" tabIndex={0} role="group" aria-label="What is asked" ref={body}>
        {doubt && (
          <p class="sagents-ask">
            Did this call run? The {store.transport.host} ended while it was at work, so only you can find out. Look before you answer: what
            runs again may happen twice.
          </p>
        )}
        {request.missing && (
          <p class="sagents-ask" data-testid="missing">
            The agent has no tool {spelledOut(tool_name)} by now, so the call would fail. Define it and add it with %agent tools add, or{" "}
            {doubt ? "do not run it again" : "reject"}.
          </p>
        )}
        <Cuts.Provider value={count}>
          <Boundary key={mode} instead={unshown}>
            {mode === "edit" ? (
              <EditForm
                values={values}
                numbers={numbers}
                defaults={defaults}
                parameters={parameters}
                disabled={locked}
                draft={draft}
                onDraft={(draft) => begin({ draft })}
                onSave={(edited) => decide({ type: "edit", digest, ...edited })}
                onCancel={() => {
                  begin({ draft: null });
                  back();
                }}
              />
            ) : (
              <Request request={request} before={before} />
            )}
          </Boundary>
        </Cuts.Provider>
      </div>
      {may("respond") && (
        <RespondForm
          options={optionsOf(kind, values)}
          values={values}
          disabled={locked}
          text={text}
          onText={(text) => begin({ text })}
          onAnswer={(answer) => decide({ type: "respond", digest, answer })}
        />
      )}
      {mode === "reject" && (
        <RejectForm
          disabled={locked}
          reason={reason}
          onReason={(reason) => begin({ reason })}
          onReject={() => decide({ type: "reject", digest, message: reason })}
          onCancel={() => {
            begin({ reason: "" });
            back();
          }}
        />
      )}
      {mode === "ask" && ALL.some(may) && (
        <div class="sagents-actions">
          {ALL.filter(may).map((decision) => (
            <Button
              key={decision}
              kind={decision === "approve" ? "primary" : undefined}
              data-testid={decision}
              aria-keyshortcuts={keyOf(decision)}
              disabled={blocked(decision)}
              onClick={() => press(decision)}
            >
              {!blocked(decision) && (
                <span class="sagents-key" aria-hidden="true">
                  {keyOf(decision)}
                </span>
              )}
              <Icon name={ICONS[decision]!} />
              {keyOf(decision) + decision.slice(1)}
            </Button>
          ))}
          <span class="sagents-space" />
          {asked.approveAll && (
            <Button data-testid="approve-all" disabled={sent || unseen} onClick={asked.approveAll}>
              Approve all {asked.open}
            </Button>
          )}
          {may("approve") && kind === "hitl" && (
            <Button
              kind="plain"
              data-testid="approve-always"
              disabled={locked || unseen}
              title="Approve, and run this tool in this conversation without asking again"
              onClick={() => approve(true)}
            >
              Always allow
            </Button>
          )}
          <Button
            kind="plain"
            class="sagents-stop"
            data-testid="approval-stop"
            title="Stop the run; nothing of this is run"
            onClick={() => void store.request("cancel").catch(() => {})}
          >
            <Icon name="stop" />
            Stop
          </Button>
        </div>
      )}
      {unseen && mode === "ask" && <FaintLine>Show all of it to be able to approve.</FaintLine>}
      {mode === "ask" && !locked && (draft || reason) && (
        <FaintLine>What you wrote is kept: {draft ? "Edit" : "Reject"} goes on with it, Approve runs what is shown.</FaintLine>
      )}
      {chosen && (
        <p class="sagents-chosen">
          You chose {CHOICE[chosen.type]}
          {!sent && (
            <>
              ; sent when the other calls are answered too.
              <BareButton class="sagents-link" onClick={undo}>
                Change
              </BareButton>
            </>
          )}
        </p>
      )}
      {slow && !store.silent && <FaintLine>The {store.transport.host} is busy; the answer counts later.</FaintLine>}
      {error && (
        <p class="sagents-error-text" role="alert" data-testid="approval-error">
          <Icon name="alert" />
          {error}
        </p>
      )}
    </div>
  );
}

const WHY = "Why not? (optional, told to the agent)";

type RejectProps = {
  disabled: boolean;
  reason: string;
  onReason: (reason: string) => void;
  onReject: () => void;
  onCancel: () => void;
};

function RejectForm({ disabled, reason, onReason, onReject, onCancel }: RejectProps) {
  const form = useRef<HTMLDivElement>(null);
  useEffect(() => form.current!.querySelector("input")!.focus({ preventScroll: true }), []);
  return (
    <div ref={form}>
      <LineForm
        id="reject-message"
        label={WHY}
        verb="Reject"
        kind="danger"
        disabled={disabled}
        text={reason}
        onText={onReason}
        onSend={onReject}
      >
        <Button kind="plain" disabled={disabled} onClick={onCancel}>
          Cancel
        </Button>
      </LineForm>
    </div>
  );
}

/** A question reads as one; whatever would be run is shown with all it is given. */
function Request({ request, before }: { request: ActionRequest; before?: string | null }) {
  const { tool_name, arguments: values = {}, numbers, defaults, allowed_decisions = ALL } = request;
  const { question, context } = values;
  if (allowed_decisions.includes("approve") || typeof question !== "string") {
    return <Arguments tool={tool_name} values={values} numbers={numbers} defaults={defaults} before={before} />;
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
