// Panels of a notebook that is opened after its kernel has ended, or while a cell waits that its save does not have.
import { expect, test } from "vitest";
import { type Context, showTranscripts, showWaiting } from "../src/reopened";

const VIEW = "application/vnd.jupyter.widget-view+json";
const panel = (id: string) => ({
  [VIEW]: { model_id: id },
  "text/markdown": "What was said.",
  "text/plain": "<Panel 'run' of session 'mine'>",
});

/** A notebook with these outputs, whose kernel has the models of `comms`; it may never be connected. */
function notebook(outputs: Record<string, unknown>[], comms: object | null, source = "", waiting: object[] = []) {
  const list = outputs.map((data) => ({ data, toJSON: () => ({ data }) }));
  const put = (data: Record<string, unknown>) => ({ data, toJSON: () => ({ data }) });
  const asked: string[] = [];
  const cell = {
    id: "c1",
    sharedModel: { getSource: () => source },
    outputs: {
      get length() {
        return list.length;
      },
      trusted: false, // a notebook that was not made here
      clear: () => void (list.length = 0),
      add: ({ data }: { data: Record<string, unknown> }) => list.push(put(data)),
      get: (i: number) => list[i]!,
      set: (i: number, { data }: { data: Record<string, unknown> }) => void (list[i] = put(data)),
    },
  };
  const comm = {
    onMsg: (_: object) => {},
    open: () => asked.push("open"),
    send: ({ type }: { type?: string }) => {
      asked.push(type!);
      comm.onMsg({ content: { data: { cells: waiting } } });
    },
    close: () => asked.push("close"),
  };
  const kernel = { connectionStatus: "connected", createComm: () => comm as never, requestCommInfo: async () => ({ content: { status: "ok", comms: comms ?? {} } }) };
  const context: Context = {
    path: "folder/notebook.ipynb",
    ready: Promise.resolve(),
    model: { dirty: false, cells: [cell] as never },
    sessionContext: { ready: comms ? Promise.resolve() : new Promise(() => {}), session: { kernel }, connectionStatusChanged: { connect: () => {}, disconnect: () => {} } },
  };
  return { context, cell, asked, live: () => list.map(({ data }) => VIEW in data), models: () => list.map(({ data }) => (data[VIEW] as { model_id: string }).model_id) };
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

test("what a cell waits for is put into it where this page has an older save, and nobody has changed anything", async () => {
  const { context, cell, asked, models } = notebook([panel("old")], {}, "%load_ext sagents_nb", [{ cell: "c1", data: panel("new") }, { cell: "c9", data: panel("other") }]);
  await showWaiting(context, sessions("folder/notebook.ipynb"));
  expect(models()).toEqual(["new"]);
  expect(cell.outputs.trusted).toBe(true); // else its panel would not be shown
  expect(asked).toEqual(["open", "waiting", "close"]);
  expect(context.model.dirty).toBe(false);
  await showWaiting(context, sessions("folder/notebook.ipynb")); // which is there by now
  expect(models()).toEqual(["new"]);
});

test.each([
  ["of a notebook that does not name us", "print(1)", "folder/notebook.ipynb"],
  ["without a kernel", "%load_ext sagents_nb", "folder/another.ipynb"],
])("%s no kernel is asked what waits", async (_, source, path) => {
  const { context, asked } = notebook([panel("old")], {}, source);
  await showWaiting(context, sessions(path));
  expect(asked).toEqual([]);
});
