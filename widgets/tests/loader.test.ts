import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeModel } from "../dev/fake";
import { emptyState } from "../dev/scenes";
import makeWidget, { type Source } from "../src/loader";

type Widget = ReturnType<typeof makeWidget>;

let el: HTMLElement;
const signal = new AbortController().signal;

function widget(traits: Record<string, unknown>): { model: FakeModel; definition: Widget; exports: Source } {
  const model = new FakeModel(emptyState(), { source: "", ...traits });
  model.answer = () => {};
  const definition = makeWidget();
  const exports = definition.initialize({ model: model.asModel() } as never);
  return { model, definition, exports };
}
const draw = (w: ReturnType<typeof widget>, host: object = {}) =>
  w.definition.render({ model: w.model.asModel(), el, signal, host } as never);

beforeEach(() => {
  vi.useFakeTimers();
  el = document.createElement("div");
});
afterEach(() => vi.useRealTimers());

test("initialize asks for nothing", () => {
  expect(widget({ version: "v0" }).model.sent).toEqual([]);
});

test("the first view of a page asks for the bundle, the second does not", () => {
  const first = widget({ version: "v1" });
  const second = widget({ version: "v1" });
  void draw(first);
  void draw(second);
  expect(first.model.sent).toEqual([{ type: "bundle" }]);
  expect(second.model.sent).toEqual([]);
});

test("after 10 s without an answer a line says so, and it is asked again, once for all views", async () => {
  const first = widget({ version: "v2" });
  void draw(first);
  await vi.advanceTimersByTimeAsync(10_001);
  expect(el.textContent).toContain("has not sent the panel");
  expect(first.model.sent).toEqual([{ type: "bundle" }, { type: "bundle" }]);
  const second = widget({ version: "v2" });
  void draw(second);
  expect(second.model.sent).toEqual([]);
  await vi.advanceTimersByTimeAsync(10_001);
  expect(second.model.sent).toEqual([{ type: "bundle" }]);
});

test("a view whose session is gone says so", async () => {
  vi.spyOn(console, "error").mockImplementation(() => {});
  const view = widget({ version: "v3", source: "anywidget:gone" });
  await draw(view, { getWidget: () => Promise.reject(new Error("no such model")) });
  expect(el.textContent).toContain("not in the kernel any more");
});

test("what a session model is told before a store is there is kept, from the last snapshot on", () => {
  const { model, exports } = widget({ version: "v4" });
  for (const seq of [1, 5]) {
    model.receive({ type: "snapshot", seq, state: emptyState() });
    model.receive({ type: "events", after: seq, seq: seq + 1, events: [] });
  }
  expect(exports.early).toMatchObject([{ type: "snapshot", seq: 5 }, { type: "events", after: 5 }]);
});
