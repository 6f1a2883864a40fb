// The last message is said anew: what is sent, what comes back, and when it is offered.
import { expect, test } from "vitest";
import { emptyState } from "../dev/scenes";
import { asked, click, find, model, one, press, said, sent, settle, show, type } from "./page";

const answered = [asked("First"), said({ type: "text", text: "One." }), asked("Second"), said({ type: "text", text: "Two." })];
const area = () => one("composer") as HTMLTextAreaElement;

test("an edited message goes out instead of the last, and the draft comes back", async () => {
  await show(emptyState({ entries: answered }));
  await type(area(), "draft");
  expect(find("edit-last")).toHaveLength(1);
  await click("edit-last");
  expect(area().value).toBe("Second");
  expect(one("editing").textContent).toContain("all after it leave the conversation");
  await type(area(), "Second, better");
  await press(area(), "Enter");
  expect(sent("send")).toMatchObject([{ text: "Second, better", instead: "Second" }]);
  expect(find("editing")).toEqual([]);
  expect(area().value).toBe("draft");
});

test("who keeps the message sends nothing, and has the draft again", async () => {
  await show(emptyState({ entries: answered }));
  await type(area(), "draft");
  await click("edit-last");
  await click("leave-edit");
  expect(area().value).toBe("draft");
  await press(area(), "Enter");
  expect(sent("send")).toMatchObject([{ text: "draft" }]);
  expect(sent("send")[0]).not.toHaveProperty("instead");
});

test("what the kernel refuses can be sent again", async () => {
  await show(emptyState({ entries: answered }));
  await click("edit-last");
  model.answer = (message) => model.receive({ type: "error", id: message.id!, kind: "ValueError", message: "The conversation went on." });
  await press(area(), "Enter");
  await settle();
  expect(area().value).toBe("Second");
  expect(find("editing")).toHaveLength(1);
});

test("the images of the message come along", async () => {
  const entry = (...parts: object[]) => ({ seq: 0, run_id: "r1", ts: 0, message: { role: "user", parts } }) as never;
  await show(emptyState({ entries: [entry({ type: "text", text: "See" }, { type: "image", data: "QUFB" })] }));
  await click("edit-last");
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
  expect(find("edit-last")).toEqual([]);
});
