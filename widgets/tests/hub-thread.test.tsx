import { render } from "preact";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeModel } from "../dev/fake";
import { emptyState } from "../dev/scenes";
import { Comm } from "../src/comm";
import { HubContext, type Hub, type Thread } from "../src/dashboard/hub";
import { Threads } from "../src/dashboard/thread";
import { settle, type } from "./page";

let page: HTMLElement;
let model: FakeModel;

beforeEach(() => {
  page = document.body.appendChild(document.createElement("div"));
});
afterEach(() => {
  signOut();
  page.remove();
});

/** Whoever signs in has another way to the same threads. */
async function signIn(thread: string, answer?: FakeModel["answer"]): Promise<void> {
  model = new FakeModel(emptyState());
  if (answer) model.answer = answer;
  const hub = { socket: () => Object.assign(new Comm(model.asModel()), { end() {} }) } as unknown as Hub;
  const there: Thread = { id: thread, agentType: "guide", createdAt: "2026-01-01T00:00:00Z" };
  render(
    <HubContext.Provider value={hub}>
      <Threads agency="a1" id={thread} threads={[there]} onChange={() => {}} />
    </HubContext.Provider>,
    page,
  );
  await settle();
}
const signOut = () => render(null, page);
const box = () => page.querySelector<HTMLTextAreaElement>('[data-testid="composer"]')!;
async function enter(text: string): Promise<void> {
  await type(box(), text);
  box().dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
  await settle();
}

test("what a hub that ended was to be sent is in the box of its thread after the sign-in, and in no other", async () => {
  await signIn("t1", (message) => message.type === "send" || model.reply(message));
  await enter("Please order 5 chairs.");
  expect(model.sent.filter((message) => message.type === "send")).toHaveLength(1);
  signOut();
  await signIn("t2");
  expect(box().value).toBe("");
  signOut();
  await signIn("t1");
  expect(box().value).toBe("Please order 5 chairs.");
});

test("what was sent is not in the box again", async () => {
  await signIn("t3");
  await enter("Please order 5 chairs.");
  expect(box().value).toBe("");
  signOut();
  await signIn("t3");
  expect(box().value).toBe("");
});
