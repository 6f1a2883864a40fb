import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { useWatched } from "../src/dashboard/hub";

let seen: DocumentVisibilityState;
beforeEach(() => {
  vi.useFakeTimers();
  seen = "visible";
  vi.spyOn(document, "visibilityState", "get").mockImplementation(() => seen);
});
afterEach(() => {
  render(null, document.body);
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms).then(() => undefined));
const look = (now: DocumentVisibilityState) => {
  seen = now;
  return act(async () => void document.dispatchEvent(new Event("visibilitychange")));
};

/** Watches what `ask` tells, and draws it. */
async function watch(ask: () => Promise<string>, unseen?: number): Promise<void> {
  const Watching = () => <p>{useWatched(ask, [], 1_000, unseen).value}</p>;
  await act(() => render(<Watching />, document.body));
  await pass(0);
}

test("what is watched is asked for again and again while somebody looks, and at once when they look again", async () => {
  let asked = 0;
  await watch(async () => String(++asked));
  await pass(2_000);
  expect(document.body.textContent).toBe("3");
  await look("hidden");
  await pass(60_000);
  expect(asked).toBe(4); // the one that was to come
  await look("visible");
  expect(asked).toBe(5);
  await pass(1_000);
  expect(asked).toBe(6);
});

test("what people are told of out of sight is asked for there too, but seldom", async () => {
  let asked = 0;
  await watch(async () => String(++asked), 10_000);
  await look("hidden");
  await pass(31_000);
  expect(asked).toBe(5);
});
