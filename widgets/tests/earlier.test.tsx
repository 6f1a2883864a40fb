// What came before the entries that a page was given, read when somebody asks for it.
import { expect, test } from "vitest";
import { emptyState } from "../dev/scenes";
import { asked, click, find, model, one, said, sent, settle, show } from "./page";

const texts = () => find("entry").map((entry) => entry.textContent!.replace(/^You|^Agent/, "").trim());
const answer = (...entries: object[]) => {
  model.answer = (message) => model.receive({ type: "reply", id: message.id!, entries: entries as never });
};

test("earlier messages are read and stand before the others", async () => {
  await show(emptyState({ entries: [asked("Third")], earlier: 2 }));
  expect(one("earlier").textContent).toBe("Show earlier messages (2)");
  answer(asked("Second"));
  await click("earlier");
  await settle();
  expect(sent("read_entries")).toMatchObject([{ before: 2 }]);
  expect(texts()).toEqual(["Second", "Third"]);
  answer(said({ type: "text", text: "First" }));
  await click("earlier");
  await settle();
  expect(sent("read_entries")[1]).toMatchObject({ before: 1 });
  expect(texts()).toEqual(["First", "Second", "Third"]);
  expect(find("earlier")).toEqual([]);
});

test("what a kernel refuses is said", async () => {
  await show(emptyState({ entries: [asked("Third")], earlier: 2 }));
  model.answer = (message) => model.receive({ type: "error", id: message.id!, kind: "ValueError", message: "Not now." });
  await click("earlier");
  await settle();
  expect(one("sagents-panel").textContent).toContain("Not now.");
  expect(texts()).toEqual(["Third"]);
});

test("what is answered after the conversation was replaced is left alone", async () => {
  await show(emptyState({ entries: [asked("Third")], earlier: 2 }));
  let late = () => {};
  model.answer = (message) => (late = () => model.receive({ type: "reply", id: message.id!, entries: [asked("Second")] }));
  await click("earlier");
  model.receive({ type: "snapshot", seq: 9, state: emptyState({ entries: [asked("Another")], earlier: 0 }) });
  late();
  await settle();
  expect(texts()).toEqual(["Another"]);
});

test("a conversation that goes on from an early message is drawn though the long one was not yet", async () => {
  const long = Array.from({ length: 200 }, (_, n) => asked(`Question ${n}. ${"word ".repeat(200)}`));
  await show(emptyState({ entries: long }));
  model.receive({ type: "snapshot", seq: 9, state: emptyState({ entries: [asked("Another")] }) });
  await settle();
  await new Promise((done) => setTimeout(done, 50));
  expect(find("entry").map((entry) => entry.textContent)).toEqual(["YouAnother"]);
});

test("a run that began in a conversation before this one is shown in its order, and so is a long one", async () => {
  const numbered = (name: string) => Array.from({ length: 40 }, (_, n) => `${name} ${n}`);
  const [before, now] = [numbered("Before"), numbered("Now")];
  await show(emptyState({ past: before.map((text) => asked(text)), entries: now.map((text) => asked(text)) }), "run", "r1");
  expect(texts()).toEqual([...before, ...now]);
});
