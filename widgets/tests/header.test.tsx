// What the header tells of the model: its name, the others, how full its context is, and the cost.
import { expect, test } from "vitest";
import { emptyState } from "../dev/scenes";
import { calls, click, el, find, gave, model, one, press, said, sent, settle, show } from "./page";

const told = (usage: object) => ({ seq: 0, run_id: "r1", ts: 0, message: { role: "assistant", parts: [], usage } }) as never;

test("the meter says what the last call had in its context, and what all has cost", async () => {
  const entries = [told({ input_tokens: 900, output_tokens: 100 }), told({ input_tokens: 1000, cache_read_tokens: 7000, output_tokens: 200 })];
  await show(emptyState({ entries, usage: { input_tokens: 1900, cache_read_tokens: 7000, output_tokens: 300, cost_usd: 0.0123 } }));
  expect(one("meter").textContent).toBe("8.2k context · $0.0123");
  expect(one("meter").title).toContain("8,200 tokens of the model's context");
  expect(one("meter").title).toContain("8,900 tokens in, of them 7,000 cached");
});

test.each([
  [100_000, "100k context · 50 %", false],
  [160_000, "160k context · 80 % full", true],
])("of a model whose window is known the part is told, and from 80 % on that it is nearly full: %i", async (read, text, full) => {
  await show(emptyState({ entries: [told({ input_tokens: read - 1, output_tokens: 1 })], context_window: 200_000 }));
  expect(one("meter").textContent).toBe(text);
  expect(one("meter").title).toContain(`${read.toLocaleString("en")} of the 200,000 tokens of the model's context.`);
  expect(one("meter").title.includes("Little room is left")).toBe(full);
  expect(one("meter").classList.contains("sagents-nearly-full")).toBe(full);
});

test.each([
  ["demo", true],
  ["claude", false],
])("of the demo it is said that its tokens are estimates: %s", async (model, says) => {
  await show(emptyState({ model, entries: [told({ input_tokens: 900, output_tokens: 100 })] }));
  expect(one("meter").title.includes("estimates, and cost nothing")).toBe(says);
});

test("a model that tells nothing has no meter", async () => {
  await show(emptyState());
  expect(find("meter")).toEqual([]);
});

test("the model's name opens the list, and a choice is sent and closes it", async () => {
  await show(emptyState());
  expect(one("model").getAttribute("aria-expanded")).toBe("false");
  await click("model");
  expect(one("model").getAttribute("aria-expanded")).toBe("true");
  expect(find("model-choice").map((choice) => choice.textContent)).toEqual([
    `${model.state.model}this session's own`,
    "anthropic:claude-sonnet-5-5ANTHROPIC_API_KEY is not set",
    "demo",
  ]);
  expect(document.activeElement).toBe(one("model-choice"));
  await press(document.activeElement!, "ArrowUp");
  expect(document.activeElement!.textContent).toBe("demo");
  await click("model-choice", 2);
  expect(sent("model")).toMatchObject([{ name: "demo" }]);
  expect(find("models")).toEqual([]);
  expect(document.activeElement).toBe(one("model"));
});

test("why a model cannot be changed is a sentence, and the list stays", async () => {
  await show(emptyState());
  await click("model");
  model.answer = (message) => model.receive({ type: "error", id: message.id!, kind: "Busy", message: "It is running." });
  await click("model-choice", 2);
  expect(one("models").querySelector('[role="alert"]')!.textContent).toBe("It is running.");
});

test("Escape closes the list and stops no run", async () => {
  await show(emptyState({ status: "running" }));
  await click("model");
  await press(one("model-choice"), "Escape");
  await settle();
  expect(find("models")).toEqual([]);
  expect(one("stop").textContent).toBe("Stop");
});

test("the time of a run stands still when its kernel has ended: nobody knows when the run did", async () => {
  await show(emptyState({ status: "running", runs: { r1: { status: "running", started: Date.now() / 1000 - 70, ended: null } } }), "run", "r1");
  expect(el.textContent).toContain("1 min");
  model.receive({ type: "closed" });
  await settle();
  expect(one("status").textContent).toBe("Closed");
  expect(el.textContent).not.toContain("1 min");
});

const ended = (name: string, end: "rejected" | "declined" | undefined, id = name) => [said(calls(id, name)), gave({ tool_call_id: id, content: "So.", is_error: end !== undefined, status: end })];

test.each([
  ["rejected", [["pay", "rejected"]], "Rejected"],
  ["rejected", [["ls"], ["write_todos"], ["pay", "rejected"], ["ship", "rejected"]], "Rejected"],
  ["declined", [["write_file", "declined"]], "Not done"],
  ["declined", [["write_file", "declined"], ["pay", "rejected"]], "Not done"],
  ["completed", [["write_file"], ["pay", "rejected"]], "Done"],
  ["completed", [["ls"]], "Done"],
  ["completed", [], "Done"],
] as [string, [string, "rejected" | "declined" | undefined][], string][])("over a run whose calls were not all done stands what became of them: %s of %j", async (name, made, label) => {
  const entries = [...made.flatMap(([tool, end]) => ended(tool, end)), said({ type: "text", text: "Well." })];
  await show(emptyState({ runs: { r1: { status: "completed", started: 3, ended: 4 } }, entries }), "run", "r1");
  expect([one("status").dataset.status, one("status").textContent]).toEqual([name, label]);
});

const INTERRUPTED = { status: "interrupted", started: 1, ended: 2 };
const RAN = { status: "completed", started: 3, ended: 4 };

test.each([
  ["a person stopped it", "cancelled", { r1: INTERRUPTED }, "Stopped"],
  ["another message came", "idle", { r1: INTERRUPTED, r2: RAN }, "Stopped"],
  ["it was answered, and is about to go on", "running", { r1: INTERRUPTED }, "Paused"],
])("a run that waited for people and waits no more: %s", async (_, status, runs, label) => {
  await show(emptyState({ status, runs } as never), "run", "r1");
  expect(one("status").textContent).toBe(label);
});
