import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { emptyState } from "../dev/scenes";
import type { FromKernel } from "../src/protocol";
import { Socket } from "../src/socket";
import { Store } from "../src/store";

/** A hub's end of a socket, as far as a page sees it. */
class Line {
  readyState = 0;
  said: { type: string; id?: string; have?: number }[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;

  send = (text: string) => void this.said.push(JSON.parse(text));
  close = () => void (this.readyState = 3);
  open(): void {
    this.readyState = 1;
    this.onopen?.();
  }
  tell(message: FromKernel): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }
  break(code = 1006): void {
    this.readyState = 3;
    this.onclose?.({ code });
  }
}

let lines: Line[];
let isThere: () => Promise<boolean>;
let socket: Socket;
let store: Store;
const line = () => lines.at(-1)!;
const todo = (seq: number, content: string) => ({ type: "todos_updated" as const, seq, todos: [{ content }] });
const snapshot = (seq: number, content = "") => ({ type: "snapshot" as const, seq, state: emptyState({ todos: [{ content }] }) });
const ofType = (type: string) => line().said.filter((message) => message.type === type);

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, "random").mockReturnValue(0.5);
  lines = [];
  isThere = async () => true;
  socket = new Socket(
    () => {
      lines.push(new Line());
      return line() as unknown as WebSocket;
    },
    () => isThere(),
  );
  store = new Store(socket);
});
afterEach(() => socket.end());

function start(seq = 10): void {
  line().open();
  line().tell(snapshot(seq));
}

test("says hello once the socket is open, and what comes is applied", () => {
  expect(line().said).toEqual([]);
  start();
  expect(line().said).toEqual([{ type: "hello", have: 0 }]);
  line().tell({ type: "events", after: 10, seq: 11, events: [todo(11, "one")] });
  expect(store.state?.todos).toEqual([{ content: "one" }]);
});

test("a line that broke is made anew by itself, and says what is here already", () => {
  start();
  line().break();
  expect(store.silent).toBe(true);
  expect(store.open).toBe(true);
  vi.advanceTimersByTime(500);
  expect(lines).toHaveLength(2);
  line().open();
  expect(line().said).toEqual([{ type: "hello", have: 10 }]);
  line().tell({ type: "events", after: 10, seq: 12, events: [todo(12, "missed")] });
  expect(store.silent).toBe(false);
  expect(store.state?.todos).toEqual([{ content: "missed" }]);
});

test("a hub that is away is tried ever more seldom, and often again after it has answered", () => {
  start();
  line().break();
  for (const pause of [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]) {
    const tried = lines.length;
    vi.advanceTimersByTime(pause - 1);
    expect(lines).toHaveLength(tried);
    vi.advanceTimersByTime(1);
    expect(lines).toHaveLength(tried + 1);
    line().break();
  }
  vi.advanceTimersByTime(15_000);
  start(11);
  line().break();
  vi.advanceTimersByTime(500);
  expect(lines).toHaveLength(10);
});

test("who looks at the page does not wait for the next try", () => {
  start();
  line().break();
  document.dispatchEvent(new Event("visibilitychange"));
  expect(lines).toHaveLength(2);
  vi.advanceTimersByTime(60_000);
  expect(lines).toHaveLength(2);
});

test("a request without an answer is said once more on the new line, with its id, and no other", async () => {
  start();
  const answered = store.request("cancel");
  line().tell({ type: "reply", id: ofType("cancel")[0]!.id! });
  await answered;
  const request = store.request("send", { text: "hi" });
  const [first] = ofType("send");
  line().break();
  vi.advanceTimersByTime(500);
  line().open();
  expect(line().said).toEqual([{ type: "hello", have: 10 }, first]);
  line().tell({ type: "events", after: 10, seq: 10, events: [] });
  line().tell({ type: "reply", id: first!.id! });
  expect((await request).id).toBe(first!.id);
  vi.advanceTimersByTime(1_000_000);
  expect(ofType("send")).toHaveLength(1);
});

test("what is asked while the line is broken goes out on the next", async () => {
  start();
  line().break();
  const request = store.request("send", { text: "hi" });
  vi.advanceTimersByTime(500);
  line().open();
  expect(ofType("send")).toHaveLength(1);
  line().tell({ type: "reply", id: ofType("send")[0]!.id! });
  await request;
});

test("a gap on a line that holds is closed by what is asked for", () => {
  start();
  line().tell({ type: "events", after: 12, seq: 13, events: [todo(13, "too early")] });
  expect(ofType("hello").at(-1)).toEqual({ type: "hello", have: 10 });
  line().tell(snapshot(13, "whole"));
  expect(store.state?.todos).toEqual([{ content: "whole" }]);
  expect(lines).toHaveLength(1);
});

test("of a hub that has begun anew the snapshot counts, though it counts from the beginning", () => {
  start(900);
  line().tell(snapshot(3, "overtaken"));
  expect(store.state?.todos).toEqual([{ content: "" }]);
  line().break(1012);
  vi.advanceTimersByTime(500);
  line().open();
  line().tell(snapshot(3, "anew"));
  expect(store.state?.todos).toEqual([{ content: "anew" }]);
  line().tell({ type: "events", after: 3, seq: 4, events: [todo(4, "next")] });
  expect(store.state?.todos).toEqual([{ content: "next" }]);
});

test("of a socket that was opened and told nothing it is asked whether the thread is there", async () => {
  let asked = 0;
  isThere = async () => ++asked < 2;
  start();
  line().break();
  expect(asked).toBe(0); // it broke: that says nothing of the thread
  vi.advanceTimersByTime(500);
  line().open();
  line().break();
  await vi.advanceTimersByTimeAsync(1_000);
  expect([asked, store.open]).toEqual([1, true]);
  line().open();
  line().break();
  await vi.advanceTimersByTimeAsync(0);
  expect([asked, store.open]).toEqual([2, false]);
  expect(lines).toHaveLength(3);
});

test("a socket closed with 1013 is left alone for longer than one that broke", () => {
  start();
  line().break(1013);
  vi.advanceTimersByTime(3_999);
  expect(lines).toHaveLength(1);
  vi.advanceTimersByTime(1);
  expect(lines).toHaveLength(2);
});

test("after 1001 it is tried again, and a thread that is not there any more closes the store", async () => {
  start();
  line().break(1001);
  expect(store.open).toBe(true);
  isThere = async () => false;
  vi.advanceTimersByTime(500);
  line().break();
  await vi.advanceTimersByTimeAsync(0);
  expect(store.open).toBe(false);
  expect(store.state?.status).toBe("closed");
  await vi.advanceTimersByTimeAsync(60_000);
  expect(lines).toHaveLength(2);
});

test("why a socket is refused people are told, and it is tried again", async () => {
  isThere = () => Promise.reject(new Error("Another process has it open."));
  line().break();
  await vi.advanceTimersByTimeAsync(500);
  expect(store.open).toBe(true);
  expect(store.silent).toBe(true);
  expect(store.transport.silent).toBe("Another process has it open.");
  expect(lines).toHaveLength(2);
  start();
  expect(store.silent).toBe(false);
  line().break();
  expect(store.transport.silent).toContain("The hub does not answer");
});

test("a thread that says that it is closed is not asked again", () => {
  start();
  const request = store.request("send", { text: "hi" });
  line().tell({ type: "closed" });
  line().break(1001);
  vi.advanceTimersByTime(60_000);
  expect(lines).toHaveLength(1);
  return expect(request).rejects.toMatchObject({ kind: "Closed", message: "This thread is closed, or was deleted." });
});

test("a line that says nothing after a question is given up", () => {
  start();
  store.request("send", { text: "hi" }).catch(() => {});
  vi.advanceTimersByTime(29_000);
  expect(line().readyState).toBe(1);
  vi.advanceTimersByTime(1_000);
  expect(line().readyState).toBe(3);
  vi.advanceTimersByTime(500);
  expect(lines).toHaveLength(2);
  line().open();
  expect(ofType("send")).toHaveLength(1);
});

test("what a hub would not take is refused here, in words, and the line holds", async () => {
  start();
  const refused = expect(store.request("send", { text: "ü".repeat(524_288) })).rejects.toMatchObject({ kind: "TooLarge", message: expect.stringContaining("1 MB") });
  await vi.advanceTimersByTimeAsync(0);
  await refused;
  expect(ofType("send")).toEqual([]);
  store.request("send", { text: "ü".repeat(524_000) }).catch(() => {});
  expect(ofType("send")).toHaveLength(1);
  expect(lines).toHaveLength(1);
});

test("who has left hears nothing and asks nothing any more", () => {
  start();
  const { onmessage } = line();
  socket.end();
  expect(line().readyState).toBe(3);
  expect(line().onmessage).toBeNull();
  expect(onmessage).not.toBeNull();
  document.dispatchEvent(new Event("visibilitychange"));
  vi.advanceTimersByTime(60_000);
  expect(lines).toHaveLength(1);
});
