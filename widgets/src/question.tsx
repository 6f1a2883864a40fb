// What waits for a person, and the answers. Those to all waiting calls go out in one message,
// because the kernel takes an interrupt's decisions together or not at all.
import { createContext } from "preact";
import { useContext, useMemo, useState } from "preact/hooks";
import { askedOfPeople, wants, type ActionRequest, type Decision, type Interrupt, type ViewState } from "./protocol";
import { useRequest } from "./use-store";

/** One call that waits. */
export type Asked = {
  request: ActionRequest;
  /** The interrupt's type. */
  kind: string;
  /** The answer that was picked here and waits for the other calls' answers. */
  chosen?: Decision;
  sent: boolean;
  slow: boolean;
  error: string;
  /** The first that has no answer yet: it stays in sight. */
  next: boolean;
  /** Approves this and all others, if there are others and approval is all that they need. */
  approveAll?: () => void;
  /** How many that would be. */
  open: number;
  /** How many wait, answers that were picked here included. */
  waiting: number;
  decide: (decision: Decision) => void;
  undo: () => void;
};

/** The calls that wait, by id. */
export type Question = Record<string, Asked>;

const QuestionContext = createContext<Question>({});
export const QuestionProvider = QuestionContext.Provider;
export const useAsked = (id: string): Asked | undefined => useContext(QuestionContext)[id];

const NONE: ActionRequest[] = [];

export function useQuestion(state: ViewState): Question {
  const { ask, busy, slow, error, setError } = useRequest();
  const interrupt = state.interrupt;
  const id = interrupt ? interrupt.id || interrupt.run_id : "";
  const [answers, setAnswers] = useState(newAnswers(""));
  // The answers to another question are none to this one.
  const { chosen, sent, refused } = answers.id === id ? answers : newAnswers(id);
  const waiting = useMemo(() => (interrupt ? askedOfPeople(state) : NONE), [interrupt, state.decided]);

  return useMemo(() => {
    if (!interrupt) return {};
    const decide = async (given: Record<string, Decision>, by: string) => {
      const decisions = { ...chosen, ...given };
      const complete = waiting.every((request) => request.tool_call_id in decisions);
      if (refused in given) setError("");
      setAnswers({ id, chosen: decisions, sent: complete, refused });
      if (!complete) return;
      await ask("decide", { interrupt_id: interrupt.id ?? "", decisions }, ({ kind, toolCallId }) => {
        const { [toolCallId]: unfit, ...others } = decisions;
        // What does not fit leaves the other answers as they are; all else may have changed the question.
        const left = unfit && kind === "InvalidDecision" ? others : {};
        setAnswers({ id, chosen: left, sent: false, refused: unfit ? toolCallId : by });
      });
    };
    const open = waiting.filter((request) => !(request.tool_call_id in chosen));
    const together = open.length > 1 && open.every((request) => wants(interrupt, request) === "approval");
    const approveAll = (by: string) => {
      const all = open.map((r) => [r.tool_call_id, { type: "approve", digest: r.digest ?? "" }] as const);
      void decide(Object.fromEntries(all), by);
    };
    const asked = waiting.map((request): [string, Asked] => {
      const call = request.tool_call_id;
      return [
        call,
        {
          request,
          kind: interrupt.type,
          chosen: chosen[call],
          sent,
          slow: slow && busy,
          error: refused === call ? error : "",
          next: request === (open[0] ?? waiting[0]),
          approveAll: together && request === open[0] ? () => approveAll(call) : undefined,
          open: open.length,
          waiting: waiting.length,
          decide: (decision) => void decide({ [call]: decision }, call),
          undo: () => {
            const { [call]: _, ...others } = chosen;
            setAnswers({ id, chosen: others, sent, refused });
          },
        },
      ];
    });
    return Object.fromEntries(asked);
  }, [interrupt, waiting, chosen, sent, refused, busy, slow, error]);
}

type Answers = { id: string; chosen: Record<string, Decision>; sent: boolean; refused: string };

const EMPTY = {};
const newAnswers = (id: string): Answers => ({ id, chosen: EMPTY, sent: false, refused: "" });

/** For those who hear the page: what kind of answer is asked for, and for what. */
export function headline(state: ViewState, interrupt: Interrupt): string {
  if (interrupt.type === "in_doubt") return "It is not known whether this ran";
  const approval = askedOfPeople(state).some((request) => wants(interrupt, request) === "approval");
  return approval ? "Approval needed" : "An answer is needed";
}
