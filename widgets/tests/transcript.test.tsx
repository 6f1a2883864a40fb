// What a conversation looks like: what happened, and nothing that says the same twice.
import { expect, test } from "vitest";
import { emptyState } from "../dev/scenes";
import { asked, calls, el, find, gave, leave, model, one, open, said, settle, show, showAgain } from "./page";

const reads = (id: string, path: string) => [said(calls(id, "read_file", { file_path: path })), gave({ tool_call_id: id, name: "read_file", content: "text" })];
const names = () => find("tool-card").map((card) => card.dataset.tool);

test("reads in a row are one line, over as many messages as they take, and open to their cards", async () => {
  const thought = { type: "thinking", text: "Now the other." };
  await show(emptyState({ entries: [...reads("a", "/a"), said(thought, calls("b", "read_file", { file_path: "/b" }), calls("c", "ls")), gave({ tool_call_id: "b", content: "b" }, { tool_call_id: "c", content: "c" }), said({ type: "text", text: "Done." })] }));
  expect(find("reads").map((fold) => fold.textContent)).toEqual(["Read 2 files, listed files"]);
  expect(names()).toEqual([]);
  expect(find("entry")).toHaveLength(2);
  await open(one("reads"));
  expect(names()).toEqual(["read_file", "read_file", "ls"]);
  expect(one("reads").textContent).toContain("Now the other.");
});

test.each([
  ["a text between them", [said({ type: "text", text: "Well." })]],
  ["another call", [said(calls("x", "write_file")), gave({ tool_call_id: "x", content: "ok" })]],
  ["a read that failed", [said(calls("x", "read_file")), gave({ tool_call_id: "x", content: "No.", is_error: true })]],
  ["a message of the user", [asked("And?")]],
])("reads stay apart for %s", async (_, between) => {
  await show(emptyState({ entries: [...reads("a", "/a"), ...between, ...reads("b", "/b")] }));
  expect(find("reads")).toEqual([]);
  expect(names().filter((name) => name === "read_file").length).toBeGreaterThan(1);
});

test("a read that somebody opened stays open when others join it", async () => {
  await show(emptyState({ status: "running", entries: reads("a", "/a"), runs: { r1: { status: "running", started: 1, ended: null } } }));
  await open(one("tool-card"));
  const message = { role: "assistant", parts: [calls("b", "read_file", { file_path: "/b" })] };
  model.events([
    { type: "message_end", seq: 5, run_id: "r1", message },
    { type: "tool_execution_end", seq: 6, tool_call_id: "b", tool_name: "read_file", status: "completed" },
  ]);
  await settle();
  expect(one("reads").querySelector("summary")!.textContent).toBe("Read 2 files");
  expect(names()).toEqual(["read_file", "read_file"]);
  expect(one("tool-card").textContent).toContain("Result");
});

test("to-do updates have no row, but one that failed", async () => {
  const todos = (id: string) => said(calls(id, "write_todos", { merge: false, todos: [] }));
  await show(emptyState({ entries: [todos("a"), gave({ tool_call_id: "a", content: "1 todo" }), todos("b"), gave({ tool_call_id: "b", content: "No.", is_error: true })] }));
  expect(names()).toEqual(["write_todos"]);
  expect(one("tool-card").dataset.status).toBe("failed");
  expect(find("entry")).toHaveLength(1);
});

test.each(["running", "interrupted", "cancelled", "idle", "closed"])("in a session that is %s a to-do is in progress as long as somebody can go on with it", async (status) => {
  await show(emptyState({ status, todos: [{ id: 1, content: "Look", status: "in_progress" }] }));
  const goesOn = status === "running" || status === "interrupted";
  expect(one("todo").textContent).toBe(goesOn ? "In progress: Look" : "Unfinished: Look");
  expect(one("todo").dataset.status).toBe(goesOn ? "in_progress" : "unfinished");
  expect(one("todo").querySelectorAll(".sagents-turning")).toHaveLength(status === "running" ? 1 : 0);
});

test.each(["session", "run", "todos"])("to-dos stay in view %s when they are done and the kernel has cleared them", async (view) => {
  const todos = [{ id: 1, content: "Look", status: "completed" }, { id: 2, content: "Write", status: "cancelled" }];
  const state = emptyState({ entries: [asked("Go."), said(calls("a", "write_todos")), gave({ tool_call_id: "a", content: "All done.", metadata: { todos } })], runs: { r1: { status: "completed", started: 1, ended: 2 } } });
  await show(state, view, view === "run" ? "r1" : "");
  expect(find("todo").map((todo) => [todo.dataset.status, todo.textContent])).toEqual([["completed", "Done: Look"], ["cancelled", "Dropped: Write"]]);
  if (view !== "session") return;
  model.events([{ type: "message_end", seq: 9, run_id: "r2", message: { role: "user", parts: [{ type: "text", text: "Next." }] } }]);
  await settle();
  expect(find("todo")).toEqual([]);
});

test("a call from before this kernel is told in the words of its tool, unless somebody edited it", async () => {
  const named = { ...calls("f1", "show_frame", { name: "orders", rows: 5 }), display_text: "Looking at a data frame" };
  await show(emptyState({ entries: [said(named), gave({ tool_call_id: "f1", content: "…" })] }));
  const summary = () => el.querySelector(".sagents-tool-summary")!.textContent;
  expect(summary()).toBe("Looking at a data frame");
  leave();
  const metadata = { edited_arguments: { name: "staff" } };
  await show(emptyState({ entries: [said(named), gave({ tool_call_id: "f1", content: "…", metadata })] }));
  expect(summary()).toBe("staff");
});

test("to-dos and the line of a thought have no marks of code", async () => {
  const thinking = "Step 1, `sales`: `run_python` fits.";
  await show(emptyState({ entries: [said({ type: "thinking", text: thinking })], todos: [{ content: "Show me `sales`" }] }));
  expect(one("todo").textContent).toBe("To do: Show me sales");
  expect(el.querySelector(".sagents-thinking-line")!.textContent).toBe("Step 1, sales: run_python fits.");
  expect(el.querySelector(".sagents-thinking-text")!.textContent).toBe(thinking);
});

test("a thought is one line, which begins as it does and opens", async () => {
  await show(emptyState({ entries: [said({ type: "thinking", text: "First the data.\nThen all else." }, { type: "text", text: "So." })] }));
  const thought = el.querySelector<HTMLDetailsElement>(".sagents-thinking")!;
  expect([thought.open, thought.querySelector("summary")!.textContent]).toEqual([false, "ThoughtFirst the data. Then all else."]);
  await open(thought);
  expect(thought.querySelector("summary")!.textContent).toBe("Thought");
});

test("a prompt that the cell above says is not said again; what came later is", async () => {
  const state = emptyState({ entries: [asked("Count."), said({ type: "text", text: "Three." }), asked("Again.")] });
  await show(state, "run", "r1", { typed: true });
  expect(find("entry").map((entry) => entry.textContent.trim())).toEqual(["AgentThree.", "YouAgain."]);
});

test("a prompt that was sent otherwise than it was typed is there in one line", async () => {
  await show(emptyState({ entries: [asked("Count 3 rows.")] }), "run", "r1");
  expect(one("entry").querySelector(".sagents-prompt")!.textContent).toBe("Count 3 rows.");
});

test("a view that is drawn again has open what was open", async () => {
  const state = emptyState({ entries: [said(calls("a", "run"), { type: "thinking", text: "Well." }), gave({ tool_call_id: "a", content: "ok" })], todos: [{ content: "Look" }] });
  await show(state, "run", "r1");
  const [todos] = el.querySelectorAll<HTMLDetailsElement>(".sagents-section");
  todos!.open = false;
  todos!.dispatchEvent(new Event("toggle"));
  await open(one("tool-card"));
  await showAgain();
  expect([...el.querySelectorAll("details")].map((fold) => [fold.className.split(" ")[0], fold.open])).toEqual([
    ["sagents-section", false],
    ["sagents-tool", true],
    ["sagents-thinking", false],
  ]);
});

test("a sub-agent shows what it is at, and then what it answered, as the text it is", async () => {
  await show(emptyState({
    status: "running",
    runs: { r1: { status: "running", started: 1, ended: null } },
    entries: [said(calls("t", "task", { instructions: "Look.", subagent_type: "critic" }))],
    tools: { t: { name: "task", status: "running", display_text: "Delegating to critic", progress: { text: "Reading /a.md", fraction: null } } },
  }));
  expect(one("tool-card").querySelector(".sagents-agent-news")!.textContent).toBe("Reading /a.md");
  model.events([
    { type: "tool_execution_end", seq: 5, tool_call_id: "t", tool_name: "task", status: "completed", duration: 1 },
    { type: "message_end", seq: 6, run_id: "r1", message: { role: "tool", parts: [{ type: "tool_result", tool_call_id: "t", name: "task", content: "It is **sound**." }] } },
  ]);
  await settle();
  expect(one("tool-card").querySelector(".sagents-agent-news")!.textContent).toBe("It is sound.");
  await open(one("tool-card"));
  expect(one("tool-card").querySelector("strong")!.textContent).toBe("sound");
});

const PICTURE = "iVBORw0KGgo=";

test("images of a result are seen without a click, and only what is an image", async () => {
  const image = (media_type: string, data = PICTURE) => ({ media_type, data });
  const images = [image("image/svg+xml"), image("image/png", '"><script>'), ...Array.from({ length: 5 }, () => image("image/png"))];
  await show(emptyState({ entries: [said(calls("p", "plot")), gave({ tool_call_id: "p", name: "plot", content: "", images })] }));
  const shown = find("result-image") as HTMLImageElement[];
  expect(shown.map((img) => [img.getAttribute("src"), img.alt])).toEqual(
    [1, 2, 3, 4].map((n) => [`data:image/png;base64,${PICTURE}`, `Image ${n} of the result of plot`]),
  );
});

const TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    x["a"]\nKeyError: \'a\'';

test.each([
  ["a run", emptyState({ status: "error", error: TRACEBACK })],
  ["a message", emptyState({ entries: [{ seq: 0, run_id: "r1", ts: 0, message: { role: "assistant", parts: [], error: TRACEBACK } }] })],
  ["a tool", emptyState({ entries: [said(calls("c", "run")), gave({ tool_call_id: "c", content: TRACEBACK, is_error: true })] })],
])("the error of %s is a sentence, with its traceback folded", async (_, state) => {
  await show(state);
  if (find("tool-card").length > 0) await open(one("tool-card"));
  const problem = el.querySelector(".sagents-problem")!;
  expect(problem.firstElementChild!.textContent).toBe("KeyError: 'a'");
  const fold = problem.querySelector("details")!;
  expect([fold.open, fold.querySelector("summary")!.textContent]).toEqual([false, "Traceback"]);
  expect(fold.textContent).toContain('File "a.py", line 1');
});

test("of code that is none the error names the line", async () => {
  const content = '  File "<run_python>", line 2\n    b = = 2\n        ^\nSyntaxError: invalid syntax';
  await show(emptyState({ entries: [said(calls("c", "run_python")), gave({ tool_call_id: "c", content, is_error: true })] }));
  await open(one("tool-card"));
  const problem = el.querySelector(".sagents-problem")!;
  expect(problem.firstElementChild!.textContent).toBe("SyntaxError: invalid syntax (line 2)");
  expect(problem.querySelector("details")!.textContent).toContain("b = = 2");
});

test.each([
  ["failed", "Error"],
  ["cancelled", "Result"],
  ["rejected", "Result"],
])("what a call of status %s has given is called %s", async (status, label) => {
  const content = "The run was stopped.\nPrinted until then:\n1 of 9";
  await show(emptyState({ entries: [said(calls("c", "run_python")), gave({ tool_call_id: "c", content, is_error: true, status })] }));
  await open(one("tool-card"));
  expect([...one("tool-card").querySelectorAll(".sagents-result > .sagents-label")].map((each) => each.textContent)).toEqual([label]);
  expect(el.querySelectorAll(".sagents-problem")).toHaveLength(status === "failed" ? 1 : 0);
});

test("an error of one sentence has nothing to fold", async () => {
  await show(emptyState({ status: "error", error: "The key was not accepted." }));
  expect(one("run-error").textContent).toBe("The key was not accepted.");
});

test("a wide table is in a box of its own, which the keyboard can scroll", async () => {
  await show(emptyState({ entries: [said({ type: "text", text: "| a | b |\n|---|---|\n| 1 | 2 |" })] }));
  const pane = el.querySelector("table")!.parentElement!;
  expect([pane.className, pane.tabIndex]).toEqual(["sagents-table-pane", 0]);
});

test("an image that stands in the cell too is not shown again below it, but in the whole panel", async () => {
  const image = { media_type: "image/png", data: "iVBORw0KGgo=" };
  const call = { type: "tool_call" as const, id: "p1", name: "plot", arguments: {} };
  const result = { type: "tool_result" as const, tool_call_id: "p1", name: "plot", content: "A plot:", images: [image], metadata: { shown_in_cell: true } };
  const entries = [
    { seq: 1, run_id: "r1", ts: 1, message: { role: "assistant", parts: [call] } },
    { seq: 2, run_id: "r1", ts: 2, message: { role: "tool", parts: [result] } },
  ];
  await show(emptyState({ entries, runs: { r1: { status: "completed", started: 1, ended: 2 } } }), "run", "r1");
  expect(find("tool-card")).toHaveLength(1);
  expect(find("result-image")).toHaveLength(0);
  leave();
  await show(emptyState({ entries }));
  expect(find("result-image")).toHaveLength(1);
});

const fields = [{ name: "df", brief: "500 rows × 6 columns", text: "DataFrame, 500 rows × 6 columns\n- a: int64", appended: true }, { name: "n", brief: "3", text: "3" }];
const given = { seq: 1, run_id: "r1", ts: 0, message: { role: "user", parts: [{ type: "text", text: "Plot {df} {n} times." }], metadata: { fields } } } as never;

test.each([
  ["whole", "session", {}, "Plot {df} {n} times."],
  ["below its cell", "run", { typed: true }, ""],
])("what {names} stood for is a line below the message as it was typed, in the panel %s", async (_, view, more, text) => {
  await show(emptyState({ entries: [given], runs: { r1: { status: "completed", started: 0, ended: 1 } } }), view, "r1", more);
  expect(el.querySelector(".sagents-bubble")?.textContent ?? "").toBe(text);
  expect(one("given").textContent).toBe("with df: 500 rows × 6 columns, n: 3");
  await open(one("given"));
  expect(one("given").textContent).toContain("- a: int64");
});

test("metadata of others with such a name are no fields", async () => {
  const odd = { ...(given as object), message: { role: "user", parts: [{ type: "text", text: "Hi" }], metadata: { fields: [1, null, { name: 2 }] } } } as never;
  await show(emptyState({ entries: [odd] }));
  expect(find("given")).toEqual([]);
});
