// The last message is said anew: what is sent, what comes back, and when it is offered.
import { expect, test } from "vitest";
import { emptyState } from "../dev/scenes";
import { asked, click, el, find, model, one, press, said, sent, settle, show, showAgain, type } from "./page";

const answered = [asked("First"), said({ type: "text", text: "One." }), asked("Second"), said({ type: "text", text: "Two." })];
const area = () => one("composer") as HTMLTextAreaElement;

test("an edited message goes out instead of the last, and the draft comes back", async () => {
  await show(emptyState({ entries: answered }));
  await type(area(), "draft");
  expect(find("edit")).toHaveLength(2);
  await click("edit", 1);
  expect(area().value).toBe("Second");
  expect(one("editing").textContent).toContain("all after it are kept as another branch");
  await type(area(), "Second, better");
  await press(area(), "Enter");
  expect(sent("send")).toMatchObject([{ text: "Second, better", instead: "Second", later: 0 }]);
  expect(find("editing")).toEqual([]);
  expect(area().value).toBe("draft");
});

test("also in a conversation that was opened again after a failure", async () => {
  await show(emptyState({ status: "paused", entries: answered.slice(0, 3) }));
  await click("edit", 1);
  await press(area(), "Enter");
  expect(sent("send")).toMatchObject([{ instead: "Second" }]);
});

test("an earlier message is edited by how many came after it", async () => {
  await show(emptyState({ entries: answered }));
  await click("edit", 0);
  expect(area().value).toBe("First");
  await press(area(), "Enter");
  expect(sent("send")).toMatchObject([{ text: "First", instead: "First", later: 1 }]);
});

test("a message is forked from its answer, and a line says how to open the fork", async () => {
  await show(emptyState({ entries: answered }));
  expect(find("fork").map((button) => button.getAttribute("aria-label"))).toEqual(["Fork from here", "Fork the conversation"]);
  await click("fork", 0);
  expect(sent("fork")).toMatchObject([{ text: "First", later: 1 }]);
  expect(one("forked").textContent).toBe("Forked. In a cell this opens the fork: %agent load study-fork");
});

test("what is said of a fork is gone once the conversation itself goes on", async () => {
  await show(emptyState({ entries: answered }));
  await click("fork", 0);
  expect(find("forked")).toHaveLength(1);
  model.events([{ type: "status_changed", seq: 50, status: "running" }]);
  await settle();
  model.events([{ type: "status_changed", seq: 51, status: "idle" }]);
  await settle();
  expect(find("forked")).toEqual([]);
});

test("in a notebook the cell that opens the fork is put below the one of the panel", async () => {
  const cells: unknown[] = [];
  const sharedModel = { insertCell: (index: number, cell: object) => cells.push([index, cell]) };
  await show(emptyState({ entries: answered }));
  Object.assign(model, { widget_manager: { context: { model: { sharedModel } } } });
  const notebook = document.body.appendChild(document.createElement("div"));
  notebook.innerHTML = '<div class="jp-Notebook"><div class="jp-Cell" data-windowed-list-index="4"></div></div>';
  notebook.querySelector(".jp-Cell")!.append(el);
  await click("fork", 1);
  expect(cells).toEqual([[5, { cell_type: "code", source: "%agent load study-fork", metadata: {} }]]);
  expect(one("forked").textContent).toContain("The new cell below");
  notebook.remove();
});

test("why nothing was forked is a sentence", async () => {
  await show(emptyState({ entries: answered }));
  model.answer = (message) => model.receive({ type: "error", id: message.id!, kind: "Busy", message: "It is running." });
  await click("fork", 1);
  expect(el.querySelector('[role="alert"].sagents-error-text')!.textContent).toBe("It is running.");
  expect(find("forked")).toEqual([]);
});

const first = { role: "user", parts: [{ type: "text", text: "First" }], metadata: { branch: "b1" } };
const branched = [{ seq: 0, run_id: "r1", ts: 0, message: first } as never, answered[1]!];
const step = (name: string) => one("branches").querySelector<HTMLButtonElement>(`[aria-label="${name} branch"]`)!;

test("between the branches of a message one goes back and forth", async () => {
  await show(emptyState({ entries: branched, branches: { b1: { current: 1, count: 3 } } }));
  expect(one("branches").textContent).toContain("2 / 3");
  step("Earlier").click();
  await settle();
  expect(sent("switch")).toMatchObject([{ branch: "b1", to: 0 }]);
});

test.each([
  ["at the first branch there is none before it", "idle", [true, false]],
  ["while a run is active no branch is left", "running", [true, true]],
])("%s", async (_, status, disabled) => {
  await show(emptyState({ entries: branched, branches: { b1: { current: 0, count: 2 } }, status }));
  expect([step("Earlier").disabled, step("Later").disabled]).toEqual(disabled);
});

test("a message that was said in one way has no switch", async () => {
  await show(emptyState({ entries: branched, branches: {} }));
  expect(find("branches")).toEqual([]);
});

test("who keeps the message sends nothing, and has the draft again", async () => {
  await show(emptyState({ entries: answered }));
  await type(area(), "draft");
  await click("edit");
  await click("leave-edit");
  expect(area().value).toBe("draft");
  await press(area(), "Enter");
  expect(sent("send")).toMatchObject([{ text: "draft" }]);
  expect(sent("send")[0]).not.toHaveProperty("instead");
});

test("the draft stays, whichever messages are picked for an edit and how often", async () => {
  await show(emptyState({ entries: answered }));
  await type(area(), "draft");
  for (const index of [0, 1, 1]) await click("edit", index);
  await showAgain();
  expect(area().value).toBe("draft");
  for (const index of [1, 0]) await click("edit", index);
  await click("leave-edit");
  expect(area().value).toBe("draft");
});

test("what is written goes on for another model of the conversation, and what was sent does not come back", async () => {
  const session_id = "study";
  await show(emptyState({ entries: answered }), "session", "", { session_id });
  await type(area(), "First");
  dispatchEvent(new Event("pagehide"));
  await show(emptyState({ entries: answered }), "session", "", { session_id });
  expect(area().value).toBe("First");
  model.answer = (message) => model.receive({ type: "reply", id: message.id! });
  await press(area(), "Enter");
  await type(area(), "Second");
  await show(emptyState({ entries: answered }), "session", "", { session_id });
  expect(area().value).toBe("Second");
  await type(area(), "");
  dispatchEvent(new Event("pagehide"));
  expect(sessionStorage.getItem("sagents undefined study session ")).toBeNull();
});

test("the last letter is kept of who leaves the page before it is painted", async () => {
  const session_id = "left at once";
  await show(emptyState({ entries: answered }), "session", "", { session_id });
  area().value = "First";
  area().dispatchEvent(new Event("input", { bubbles: true }));
  await Promise.resolve();
  dispatchEvent(new Event("pagehide"));
  expect(sessionStorage.getItem(`sagents undefined ${session_id} session `)).toBe('["First",[]]');
});

test.each(["null", "{}", "[null]", "[{}, 5]", '["x", [5]]', "no JSON"])("what another script has stored in its place, %s, breaks nothing", async (value) => {
  const session_id = `odd ${value}`;
  sessionStorage.setItem(`sagents undefined ${session_id} session `, value);
  await show(emptyState({ entries: answered }), "session", "", { session_id });
  await type(area(), "draft");
  expect(area().value).toBe("draft");
});

test("the message that is being edited is marked, as long as it is", async () => {
  await show(emptyState({ entries: answered }));
  const marked = () => find("edit").map((button) => button.getAttribute("aria-current"));
  await click("edit", 0);
  expect(marked()).toEqual(["true", null]);
  expect(one("editing").textContent).toContain("instead of the marked message");
  expect(one("leave-edit").textContent).toBe("Cancel");
  await click("leave-edit");
  expect(marked()).toEqual([null, null]);
});

test("Escape keeps the message as it is", async () => {
  await show(emptyState({ entries: answered }));
  await type(area(), "draft");
  await click("edit");
  await press(area(), "Escape");
  expect(find("editing")).toEqual([]);
  expect(area().value).toBe("draft");
});

test("what the kernel refuses can be sent again", async () => {
  await show(emptyState({ entries: answered }));
  await click("edit", 1);
  model.answer = (message) => model.receive({ type: "error", id: message.id!, kind: "ValueError", message: "The conversation went on." });
  await press(area(), "Enter");
  await settle();
  expect(area().value).toBe("Second");
  expect(find("editing")).toHaveLength(1);
});

test("the images of the message come along", async () => {
  const entry = (...parts: object[]) => ({ seq: 0, run_id: "r1", ts: 0, message: { role: "user", parts } }) as never;
  await show(emptyState({ entries: [entry({ type: "text", text: "See" }, { type: "image", data: "QUFB" })] }));
  await click("edit");
  expect(find("attached")).toHaveLength(1);
  await press(area(), "Enter");
  expect(sent("send")).toMatchObject([{ text: "See", images: [{ media_type: "image/png", data: "QUFB" }], instead: "See\n[image]" }]);
});

test.each([
  ["while a run is active", "session", "running", answered],
  ["while something waits", "session", "interrupted", answered],
  ["in the view of a run, whose cell says it", "run", "idle", answered],
  ["without all of its images", "session", "idle", [{ seq: 0, run_id: "r1", ts: 0, message: { role: "user", parts: [{ type: "image" }] } } as never]],
])("%s nothing is edited", async (_, view, status, entries) => {
  await show(emptyState({ status, entries }), view, "r1");
  expect(find("edit")).toEqual([]);
  const canFork = status === "idle" && view === "session";
  expect(find("fork")).toHaveLength(canFork ? 1 : 0);
});
