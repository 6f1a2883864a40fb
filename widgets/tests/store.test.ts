import { readFileSync } from "node:fs";
import { beforeEach, expect, test, vi } from "vitest";
import { FakeModel } from "../dev/fake";
import { emptyState } from "../dev/scenes";
import { Comm } from "../src/comm";
import type { FromKernel, Json } from "../src/protocol";
import { Store, storeFor } from "../src/store";

let model: FakeModel;
let store: Store;
const todo = (seq: number, content: string) => ({ type: "todos_updated" as const, seq, todos: [{ content }] });
const hellos = () => model.sent.filter((message) => message.type === "hello");

beforeEach(() => {
  vi.useFakeTimers();
  model = new FakeModel(emptyState());
  model.answer = () => {};
  store = new Store(new Comm(model.asModel()));
});

const start = (seq = 10) => model.receive({ type: "snapshot", seq, state: emptyState() });

test("says hello once, and again while nobody answers, ever more seldom", () => {
  expect(model.sent).toEqual([{ type: "hello", have: 0 }]);
  vi.advanceTimersByTime(10_000);
  expect(hellos()).toHaveLength(2);
  vi.advanceTimersByTime(19_000);
  expect(hellos()).toHaveLength(2);
  vi.advanceTimersByTime(1_000);
  expect(hellos()).toHaveLength(3);
  start();
  vi.advanceTimersByTime(1_000_000);
  expect(hellos()).toHaveLength(3);
});

test("events that follow are applied", () => {
  start();
  model.receive({ type: "events", after: 10, seq: 14, events: [todo(12, "one"), todo(14, "two")] });
  expect(store.state?.todos).toEqual([{ content: "two" }]);
  expect(hellos()).toHaveLength(1);
});

test("a gap is answered by one hello, which says what is there, and by the snapshot that comes", () => {
  start();
  model.receive({ type: "events", after: 12, seq: 13, events: [todo(13, "lost")] });
  model.receive({ type: "events", after: 13, seq: 14, events: [todo(14, "lost too")] });
  expect(hellos()).toEqual([{ type: "hello", have: 0 }, { type: "hello", have: 10 }]);
  expect(store.state?.todos).toEqual([]);
  model.receive({ type: "snapshot", seq: 14, state: emptyState({ todos: [{ content: "whole" }] }) });
  model.receive({ type: "events", after: 14, seq: 15, events: [todo(15, "next")] });
  expect(store.state?.todos).toEqual([{ content: "next" }]);
});

test("a gap is closed by the events that were missing, and nothing more is asked", () => {
  start();
  model.receive({ type: "events", after: 12, seq: 13, events: [todo(13, "too early")] });
  model.receive({ type: "events", after: 10, seq: 12, events: [todo(12, "overtaken")] });
  expect(store.state?.todos).toEqual([{ content: "overtaken" }]);
  model.receive({ type: "events", after: 12, seq: 13, events: [todo(13, "again")] });
  expect(store.state?.todos).toEqual([{ content: "again" }]);
  vi.advanceTimersByTime(1_000_000);
  expect(hellos()).toHaveLength(2);
});

test("a message that says nothing new tells that the last one was lost", () => {
  start();
  model.receive({ type: "events", after: 10, seq: 10, events: [] });
  expect(hellos()).toHaveLength(1);
  model.receive({ type: "events", after: 14, seq: 14, events: [] });
  expect(hellos().at(-1)).toEqual({ type: "hello", have: 10 });
});

test("a snapshot that was overtaken, or comes twice, takes nothing back", () => {
  start();
  model.receive({ type: "events", after: 10, seq: 12, events: [todo(12, "newer")] });
  start();
  expect(store.state?.todos).toEqual([{ content: "newer" }]);
  model.receive({ type: "events", after: 12, seq: 13, events: [todo(13, "next")] });
  expect(store.state?.todos).toEqual([{ content: "next" }]);
});

test("a request is asked again with its id until it is answered, ever more seldom", async () => {
  start();
  const said = () => model.sent.filter((message) => message.type === "send");
  const request = store.request("send", { text: "hi" });
  vi.advanceTimersByTime(31_000);
  expect(said()).toHaveLength(3);
  expect(said()[2]).toEqual(said()[0]);
  model.receive({ type: "reply", id: said()[0]!.id! });
  await request;
  vi.advanceTimersByTime(1_000_000);
  expect(said()).toHaveLength(3);
});

test("a kernel that is asked again is silent until it says something, or is gone", () => {
  expect(store.silent).toBe(false);
  vi.advanceTimersByTime(10_000);
  expect(store.silent).toBe(true);
  start();
  expect(store.silent).toBe(false);
  store.request("send", { text: "hi" }).catch(() => {});
  vi.advanceTimersByTime(10_000);
  expect(store.silent).toBe(true);
  store.close();
  expect(store.silent).toBe(false);
});

test("who looks at the page again has it ask for what was missed meanwhile", () => {
  start();
  document.dispatchEvent(new Event("visibilitychange"));
  document.dispatchEvent(new Event("visibilitychange"));
  expect(hellos().slice(1)).toEqual([{ type: "hello", have: 10 }]);
  model.receive({ type: "events", after: 10, seq: 10, events: [] });
  store.close();
  document.dispatchEvent(new Event("visibilitychange"));
  expect(hellos()).toHaveLength(2);
});

test("events that another page asked for are not applied twice", () => {
  start();
  model.receive({ type: "events", after: 2, seq: 10, events: [todo(9, "old")] });
  expect(store.state?.todos).toEqual([]);
  expect(hellos()).toHaveLength(1);
});

test("a request resolves with the reply of its id", async () => {
  const first = store.request("read_file", { path: "/a" });
  const second = store.request("cancel");
  const [a, b] = model.sent.slice(1);
  expect(a).toMatchObject({ type: "read_file", path: "/a" });
  expect(a!.id).not.toBe(b!.id);
  model.receive({ type: "reply", id: b!.id! });
  model.receive({ type: "reply", id: "of another page" });
  model.receive({ type: "reply", id: a!.id!, file: { path: "/a", content: "x", size: 1, truncated: false } });
  expect((await first).file?.content).toBe("x");
  expect((await second).id).toBe(b!.id);
});

test("an error rejects its request with kind and message", async () => {
  const request = store.request("decide");
  model.receive({ type: "error", id: model.sent[1]!.id!, kind: "StaleApproval", message: "Too late." });
  await expect(request).rejects.toMatchObject({ kind: "StaleApproval", message: "Too late." });
});

test("the examples of errors reject their requests with the call that was refused", async () => {
  const examples = JSON.parse(readFileSync("../tests/fixtures/protocol/messages.json", "utf8")).from_kernel as FromKernel[];
  const errors = examples.filter((message) => message.type === "error");
  expect(errors.map((error) => error.tool_call_id)).toEqual(["w2", "q1", undefined, undefined]);
  for (const error of errors) {
    const request = store.request("decide");
    model.receive({ ...error, id: model.sent.at(-1)!.id! });
    const { kind, message, tool_call_id: toolCallId = "" } = error;
    await expect(request).rejects.toMatchObject({ kind, message, toolCallId });
  }
});

test("a closed session fails what waits and what comes", async () => {
  start();
  const request = store.request("cancel");
  model.receive({ type: "closed" });
  await expect(request).rejects.toMatchObject({ kind: "Closed" });
  await expect(store.request("send")).rejects.toMatchObject({ kind: "Closed" });
  expect(store.state?.status).toBe("closed");
});

test("subscribers hear of many messages once a frame", () => {
  const heard = vi.fn();
  const unsubscribe = store.subscribe(heard);
  start();
  model.receive({ type: "events", after: 10, seq: 11, events: [todo(11, "a")] });
  model.receive({ type: "events", after: 11, seq: 12, events: [todo(12, "b")] });
  vi.advanceTimersByTime(50);
  expect(heard).toHaveBeenCalledTimes(1);
  unsubscribe();
  start(20);
  vi.advanceTimersByTime(50);
  expect(heard).toHaveBeenCalledTimes(1);
});

test("a store begins with what its model was told before it", () => {
  const state = emptyState({ todos: [{ content: "early" }] });
  const events = { type: "events", after: 10, seq: 11, events: [todo(11, "later")] };
  const other = { model: model.asModel(), early: [{ type: "snapshot", seq: 10, state }, events] as unknown[] | null };
  expect(storeFor(other).state?.todos).toEqual([{ content: "later" }]);
  expect(other.early).toBeNull();
});

test("a session model has one store", () => {
  const other = { model: new FakeModel(emptyState()).asModel(), early: null };
  expect(storeFor(other)).toBe(storeFor(other));
});

test.each([200, 3_000])("a request of %i levels is an error at once, and is not sent to a kernel that could not read it", async (levels) => {
  let deep: Json = null;
  for (let level = 0; level < levels; level++) deep = level % 2 ? [deep] : { deep };
  await expect(store.request("decide", { deep })).rejects.toMatchObject({ kind: "TooDeep" });
  expect(model.sent.filter((message) => message.type === "decide")).toEqual([]);
});
