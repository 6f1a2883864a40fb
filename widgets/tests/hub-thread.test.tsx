import { render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeModel } from "../dev/fake";
import { emptyState } from "../dev/scenes";
import { Comm } from "../src/comm";
import { HubContext, type Hub, type Thread } from "../src/dashboard/hub";
import { Threads } from "../src/dashboard/thread";
import { said, settle, type } from "./page";

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

/** The page of a thread of a notebook; `states` are what its ways tell one after the other, null of one on which nothing comes. */
async function showServed(threads: (served: Thread) => Thread[] | null, ...states: (ReturnType<typeof emptyState> | null)[]): Promise<void> {
  const ways: FakeModel[] = [];
  const hub = {
    socket: () => {
      const state = states[ways.length];
      const way = new FakeModel(state ?? emptyState());
      if (!state) way.answer = () => {};
      ways.push(way);
      model = way;
      return Object.assign(new Comm(way.asModel()), { end() {} });
    },
  } as unknown as Hub;
  const served = { id: "n1", agentType: "guide", createdAt: "2026-01-01T00:00:00Z", title: "Penguins", kernel: "here" } as Thread;
  const draw = (threads: Thread[] | null) =>
    render(
      <HubContext.Provider value={hub}>
        <Threads agency="a1" id="n1" threads={threads} onChange={() => {}} />
      </HubContext.Provider>,
      page,
    );
  draw([served]);
  await settle();
  vi.useFakeTimers();
  try {
    model.receive({ type: "closed" });
    draw(threads(served));
    await vi.advanceTimersByTimeAsync(10_000);
  } finally {
    vi.useRealTimers();
  }
}
const TALKED = emptyState({ entries: [said({ type: "text", text: "They are 344." })] });
const notice = () => page.querySelector('[data-testid="withdrawn"]')?.textContent ?? "";

test.each([
  ["whose kernel serves the page no more", (served: Thread) => [served]],
  ["that is not on the hub any more", () => []],
  ["whose agency is not on the hub any more", () => null],
])("a conversation of a notebook %s stays in sight, and it is said how it is live again", async (_, threads) => {
  await showServed(threads, TALKED, null, null, null);
  expect(page.textContent).toContain("They are 344.");
  expect(page.querySelector("h1")!.textContent).toBe("Penguins");
  expect(notice()).toContain("The notebook no longer shows this conversation");
  expect(notice()).toContain("%agent serve");
  expect(page.textContent).not.toContain("Connecting");
  expect(page.querySelector('[data-testid="deleted"]')).toBeNull();
});

test("a conversation that a kernel serves again is live again", async () => {
  await showServed((served) => [served], TALKED, emptyState({ entries: [said({ type: "text", text: "And now?" })] }));
  expect(page.textContent).toContain("And now?");
  expect(notice()).toBe("");
});
