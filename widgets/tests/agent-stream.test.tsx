// Sub-agents in the cards of their calls: what they say and do, while they do it and after.
import { expect, test } from "vitest";
import { emptyState } from "../dev/scenes";
import type { AgentState, JsonObject } from "../src/protocol";
import { asked, calls, find, gave, one, said, settle, show } from "./page";

const task = said(calls("t1", "task", { instructions: "Look.", subagent_type: "helper" }));
const agent = (more: Partial<AgentState> = {}): AgentState => ({
  entries: [asked("Look."), said({ type: "text", text: "I look." }, calls("i1", "ls", { path: "/" }))],
  earlier: 0, partial: null, tools: { i1: { name: "ls", status: "running", display_text: null } }, usage: {}, agents: {}, ...more,
});
const running = { t1: { name: "task", status: "running", display_text: null } };
const open = async (index = 0, tool = "task") => {
  const card = find("tool-card").filter((each) => each.dataset.tool === tool)[index]!.querySelector("details")!;
  card.open = true;
  card.dispatchEvent(new Event("toggle"));
  await settle();
};
const stream = () => one("agent-stream");
const tools = () => [...stream().querySelectorAll<HTMLElement>("[data-testid=tool-card]")].map(({ dataset }) => [dataset.tool, dataset.status]);

test("what a sub-agent says and does stands in its card, its task once", async () => {
  await show(emptyState({ status: "running", entries: [task], tools: running, agents: { t1: agent() } }));
  expect(find("agent-stream")).toEqual([]);
  await open();
  expect(stream().textContent).toContain("I look.");
  expect(tools()).toEqual([["ls", "running"]]);
  expect(stream().textContent).not.toContain("Look.");
});

test("what it is about to say is there as it comes", async () => {
  const partial = { run_id: "s1", seq: 9, parts: [{ type: "text" as const, text: "There is" }] };
  await show(emptyState({ status: "running", entries: [task], tools: running, agents: { t1: agent({ partial }) } }));
  await open();
  expect(stream().textContent).toContain("There is");
});

test("when it has answered, its answer stands below and not twice", async () => {
  const entries = [...agent().entries, gave({ tool_call_id: "i1", name: "ls", content: "/a.md" }), said({ type: "text", text: "One file." })];
  const done = { t1: { name: "task", status: "completed", display_text: null, duration: 2 } };
  await show(emptyState({ entries: [task, gave({ tool_call_id: "t1", name: "task", content: "One file." })], tools: done, agents: { t1: agent({ entries, tools: {} }) } }));
  await open();
  expect(tools()).toEqual([["ls", "completed"]]);
  expect(document.body.textContent!.match(/One file\./g)).toHaveLength(1);
});

test("a sub-agent of a sub-agent stands in its card", async () => {
  const outer = agent({ entries: [said(calls("n1", "task", { instructions: "Deeper." }))], tools: { n1: running.t1 }, agents: { n1: agent() } });
  await show(emptyState({ status: "running", entries: [task], tools: running, agents: { t1: outer } }));
  await open();
  await open(1);
  expect(find("agent-stream")).toHaveLength(2);
  expect(find("agent-stream")[1]!.textContent).toContain("I look.");
});

test("of a long result it is said that this is its beginning", async () => {
  const entries = [...agent().entries, gave({ tool_call_id: "i1", name: "ls", content: "/a.md", shortened: 30_000 })];
  await show(emptyState({ status: "running", entries: [task], tools: running, agents: { t1: agent({ entries, tools: {} }) } }));
  await open();
  const inner = stream().querySelector("details")!;
  inner.open = true;
  inner.dispatchEvent(new Event("toggle"));
  await settle();
  expect(stream().textContent).toContain("The beginning of 30,000 characters");
  expect(stream().querySelector(".sagents-link")).toBeNull();
});

test.each([
  ["", ""],
  ['{"subagent_type": "rese', ""],
  ['{"instructions"', ""],
  ['{"instructions": "Find the', "Find the"],
  ['{"subagent_type": "a", "instructions": "Find \\"it\\"\\n now\\', 'Find "it" now'],
  ['{"instructions": "1 \\u20', "1"],
  ['{"system_prompt": "Say \\"instructions\\": \\"x\\"", "inst', ""],
  ['{"instructions": "Done.", "subagent_type": "a"}', "Done."],
])("of arguments that are on their way, %s, the row says what is to be done: %s", async (text, shown) => {
  const part = { type: "tool_call" as const, index: 0, id: "t1", name: "task", text };
  await show(emptyState({ status: "running", partial: { run_id: "r1", seq: 9, parts: [part] } }));
  expect(one("coming").textContent).toBe(`task${shown}`);
});

test("the card of a task of another agent says how it went and what it made", async () => {
  const task = { id: "task-1f", agent: "weather", state: "completed", seconds: 1.2, tokens: 300, artifacts: ["rain.csv", "a.md"] };
  await show(
    emptyState({
      entries: [said(calls("c1", "agent__weather", { instructions: "Tomorrow?" })), gave({ tool_call_id: "c1", content: "Sun.", metadata: { task } })],
    }),
  );
  await open(0, "agent__weather");
  expect(one("task").textContent).toBe("task-1f: completed (1.2 s, 300 tokens); it made rain.csv, a.md");
});

test("the card of a call of its that was approved says so, and by whom", async () => {
  const inner = agent({ entries: [asked("Look."), said(calls("i1", "ls", { path: "/" })), gave({ tool_call_id: "i1", content: "/a.md", decision: { type: "approve", by: "ann" } })], tools: {} });
  await show(emptyState({ entries: [task], agents: { t1: inner }, tools: running }));
  await open();
  const card = stream().querySelector<HTMLElement>("[data-testid=tool-card]")!;
  expect(card.querySelector("summary")!.textContent).toContain("Approved");
  card.querySelector("details")!.open = true;
  card.querySelector("details")!.dispatchEvent(new Event("toggle"));
  await settle();
  expect(card.querySelector("[data-testid=outcome]")!.textContent).toBe("Approved by ann");
});

const ended = { name: "agent_lab", status: "completed", display_text: null, duration: 2 };
const finished = (metadata: JsonObject) =>
  emptyState({ entries: [said(calls("t1", "agent_lab", {})), gave({ tool_call_id: "t1", name: "agent_lab", content: "Done.", metadata })], tools: { t1: ended } });

test("of a task it is said how it went and what it made", async () => {
  await show(finished({ task: { id: "task-7", state: "input_required", seconds: 3, tokens: 1200, artifacts: ["/plot.png"] } }));
  await open(0, "agent_lab");
  expect(one("task").textContent).toMatch(/^task-7: input required \(3(\.0)? s, 1,200 tokens\); it made \/plot\.png$/);
});

test.each<JsonObject>([{ task: "sweep the floor" }, { task: { id: 7 } }, { task: { id: "a", state: 1 } }, { task: { id: "a", state: "done", artifacts: {} } }, { task: null }])(
  "what a tool of somebody's own means by a task is not taken for one: %j",
  async (metadata) => {
    await show(finished(metadata));
    await open(0, "agent_lab");
    expect(find("task")).toEqual([]);
    expect(find("tool-card")[0]!.textContent).toContain("Done.");
  },
);
