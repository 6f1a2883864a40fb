// A panel on a page, without a kernel, for tests: what is shown of it, and what a person does to it.
import { afterEach, beforeEach } from "vitest";
import { FakeModel } from "../dev/fake";
import { emptyState } from "../dev/scenes";
import * as colouring from "../src/colours";
import { colours } from "../src/highlight";
import { render } from "../src/panel";
import type { Interrupt, JsonObject, ViewState } from "../src/protocol";

colours.use(colouring);

export let el: HTMLElement;
export let model: FakeModel;
let controller: AbortController;

// Drawing is a chain of timers, each made by the one before it: as many turns of them, and no stretch of
// time, which a busy machine lets pass before the chain has begun.
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setTimeout(resolve, 1));
}
export const find = (id: string) => [...el.querySelectorAll<HTMLElement>(`[data-testid="${id}"]`)];
export const one = (id: string) => find(id)[0]!;
export const sent = (type: string) => model.sent.filter((message) => message.type === type);

export async function click(id: string, index = 0): Promise<void> {
  find(id)[index]!.click();
  await settle();
}
export async function type(element: HTMLElement, text: string): Promise<void> {
  (element as HTMLTextAreaElement).value = text;
  element.dispatchEvent(new Event("input", { bubbles: true }));
  await settle();
}
export async function press(element: Element, key: string, more: KeyboardEventInit = {}): Promise<void> {
  element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
  await settle();
}
/** Opens the fold of a card, and of others. */
export async function open(element: Element): Promise<void> {
  const details = (element.matches("details") ? element : element.querySelector("details")) as HTMLDetailsElement;
  details.open = true;
  details.dispatchEvent(new Event("toggle"));
  await settle();
}
let conversations = 0;

/** Shows a view of a session, of another one each time; with `answer`, of a kernel that answers so. */
export async function show(state: ViewState, view = "session", runId = "", more: { typed?: boolean; waiting?: number; session_id?: string; answer?: FakeModel["answer"] } = {}): Promise<void> {
  const { answer, ...traits } = more;
  model = new FakeModel(state, { view, run_id: runId, session_id: `s${++conversations}`, ...traits });
  if (answer) model.answer = answer;
  draw();
  await settle();
}
/** Draws the view of the same model once more, as Jupyter does when a cell has ended. */
export async function showAgain(): Promise<void> {
  leave();
  draw();
  await settle();
}
export const leave = () => {
  controller.abort();
  controller = new AbortController();
};
const draw = () => render({ model: model.asModel(), source: { model: model.asModel(), early: null }, el, signal: controller.signal });

export function waiting(...requests: NonNullable<Interrupt["action_requests"]>): ViewState {
  return emptyState({
    status: "interrupted",
    interrupt: { id: "i1", type: "hitl", run_id: "r1", action_requests: requests },
  });
}
export const write = { tool_call_id: "w1", tool_name: "write_file", digest: "dw", arguments: { file_path: "/a.md", content: "one\ntwo\n", overwrite: true } };
export const remove = { tool_call_id: "x1", tool_name: "delete_file", digest: "dx", arguments: { file_path: "/b.md" }, allowed_decisions: ["approve", "reject"] };
/** A message of the agent. */
export const said = (...parts: object[]) => ({ seq: 0, run_id: "r1", ts: 0, message: { role: "assistant", parts } }) as never;
export const asked = (text: string) => ({ seq: 0, run_id: "r1", ts: 0, message: { role: "user", parts: [{ type: "text", text }] } }) as never;
/** The results of its calls. */
export const gave = (...results: object[]) =>
  ({ seq: 0, run_id: "r1", ts: 0, message: { role: "tool", parts: results.map((result) => ({ type: "tool_result", name: "tool", ...result })) } }) as never;
export const calls = (id: string, name: string, values: JsonObject = {}) => ({ type: "tool_call" as const, id, name, arguments: values });

beforeEach(() => {
  controller = new AbortController();
  el = document.body.appendChild(document.createElement("div"));
});
afterEach(() => {
  controller.abort();
  el.remove();
});
