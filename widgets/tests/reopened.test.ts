// Panels of a notebook that is opened after its kernel has ended.
import { expect, test } from "vitest";
import { type Context, showTranscripts } from "../src/reopened";

const VIEW = "application/vnd.jupyter.widget-view+json";
const panel = (id: string) => ({
  [VIEW]: { model_id: id },
  "text/markdown": "What was said.",
  "text/plain": "<Panel 'run' of session 'mine'>",
});

/** A notebook with these outputs, whose kernel has the models of `comms`; it may never be connected. */
function notebook(outputs: Record<string, unknown>[], comms: object | null) {
  const list = outputs.map((data) => ({ data, toJSON: () => ({ data }) }));
  const cell = {
    type: "code",
    outputs: {
      length: list.length,
      get: (i: number) => list[i]!,
      set: (i: number, { data }: { data: Record<string, unknown> }) => void (list[i] = { data, toJSON: () => ({ data }) }),
    },
  };
  const kernel = { requestCommInfo: async () => ({ content: { status: "ok", comms: comms ?? {} } }) };
  const context: Context = {
    path: "folder/notebook.ipynb",
    ready: Promise.resolve(),
    model: { dirty: false, cells: [cell] as never },
    sessionContext: { ready: comms ? Promise.resolve() : new Promise(() => {}), session: { kernel } },
  };
  return { context, live: () => list.map(({ data }) => VIEW in data) };
}

const sessions = (...paths: string[]) => {
  let known: { path: string }[] = [];
  const refreshRunning = async () => void (known = paths.map((path) => ({ path })));
  return { refreshRunning, running: () => known };
};

test("where no kernel runs, panels are their transcripts before a new one has begun", async () => {
  const slider = { [VIEW]: { model_id: "b" }, "text/plain": "IntSlider()" };
  const { context, live } = notebook([panel("a"), slider], null);
  await showTranscripts(context, sessions("folder/another.ipynb"));
  expect(live()).toEqual([false, true]); // what is of others is left to them
  expect(context.model.dirty).toBe(false);
});

test("where a kernel runs, the panels that it has live on", async () => {
  const { context, live } = notebook([panel("a"), panel("b")], { a: {} });
  await showTranscripts(context, sessions("RTC:folder/notebook.ipynb"));
  expect(live()).toEqual([true, false]);
});

test("where nobody knows what runs, the kernel is asked", async () => {
  const { context, live } = notebook([panel("a")], { a: {} });
  const broken = { refreshRunning: () => Promise.reject(new Error("gone")), running: () => [] };
  await showTranscripts(context, broken);
  expect(live()).toEqual([true]);
});
