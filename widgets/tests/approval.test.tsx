// Where a person decides: the row of the call itself, with all that would be run.
import { expect, test } from "vitest";
import { emptyState } from "../dev/scenes";
import type { JsonObject, ViewState } from "../src/protocol";
import { asked, calls, click, el, find, gave, leave, model, one, open, press, remove, said, sent, settle, show, showAgain, type, waiting, write } from "./page";

/** A conversation whose last message made the calls that wait. */
function inPlace(...requests: Parameters<typeof waiting>): ViewState {
  const made = requests.map((request) => calls(request.tool_call_id, request.tool_name, request.arguments));
  return {
    ...waiting(...requests),
    entries: [asked("Do it."), said({ type: "text", text: "I do." }, ...made)],
    runs: { r1: { status: "interrupted", started: 1, ended: 2 } },
  };
}
const diff = (element: Element) =>
  [...element.querySelectorAll(".sagents-diff-line")].map((line) => line.querySelector(".sagents-diff-sign")!.textContent + line.querySelector(".sagents-diff-text")!.textContent);
const edit = { tool_call_id: "e1", tool_name: "edit_file", digest: "de", arguments: { new_string: "Sales rose.\nA lot.\n", old_string: "Sales fell.\nA lot.\n", file_path: "/a.md" } };

test("the question stands in the row of the call, once, and the row stays when it is answered", async () => {
  await show(inPlace(write));
  expect([find("tool-card").length, find("approval").length]).toEqual([1, 1]);
  const row = one("tool-card");
  expect(row.contains(one("approval"))).toBe(true);
  expect(row.className).toContain("sagents-in-sight");
  model.events([
    { type: "decision", seq: 5, tool_call_id: "w1", decision: { type: "approve" }, by: "user" },
    { type: "status_changed", seq: 6, status: "running" },
    { type: "agent_start", seq: 6, run_id: "r1", ts: 3 },
    { type: "tool_execution_start", seq: 7, tool_call: calls("w1", "write_file") },
  ]);
  await settle();
  expect(one("tool-card")).toBe(row);
  expect(find("approval")).toEqual([]);
  expect([row.dataset.status, row.className.includes("in-sight")]).toEqual(["running", false]);
  model.events([{ type: "tool_execution_end", seq: 8, tool_call_id: "w1", tool_name: "write_file", status: "completed", duration: 1 }]);
  await settle();
  expect(row.textContent).toContain("Approved");
  await open(row);
  expect(one("outcome").textContent).toBe("Approved by user");
});

test.each([
  [{ type: "reject", message: "Not on a Sunday." }, "rejected", "Rejected", "Rejected by user: Not on a Sunday."],
  [{ type: "edit", arguments: {} }, "completed", "Edited", "Approved with changes by user"],
  [{ type: "approve", always: true }, "failed", "Failed", "Approved by user, as all calls of this tool from here on"],
  [{ type: "approve", always: true, by: "always" }, "completed", "Always allowed", "Always allowed in this conversation"],
])("the row says what was decided, by whom, and what came of it: %o", async (decision, status, word, outcome) => {
  await show({
    ...emptyState(),
    entries: [said(calls("w1", "write_file", write.arguments)), gave({ tool_call_id: "w1", content: "So it was." })],
    decided: { w1: { by: "user", ...decision } },
    tools: { w1: { name: "write_file", status, display_text: null } },
  });
  const row = one("tool-card");
  expect(row.querySelector(".sagents-tool-word")!.textContent).toBe(word);
  await open(row);
  expect(one("outcome").textContent).toBe(outcome);
  expect(row.textContent).toContain("So it was.");
});

test("a call whose tool the agent does not have by now says so before it is approved, until it has it", async () => {
  await show(inPlace({ ...write, missing: true }, { ...edit }));
  expect(find("missing").map((line) => line.textContent)).toEqual([
    "The agent has no tool write_file by now, so the call would fail. Define it and add it with %agent tools add, or reject.",
  ]);
  expect(find("approval")[0]!.contains(one("missing"))).toBe(true);
  model.receive({ type: "snapshot", seq: 9, state: inPlace(write, edit) });
  await settle();
  expect(find("missing")).toEqual([]);
});

test("an edit is shown as what goes and what comes", async () => {
  await show(inPlace(edit));
  expect(diff(one("approval"))).toEqual(["-Sales fell.", "+Sales rose.", " A lot."]);
  expect(one("approval").textContent).not.toContain("old_string");
  expect([...one("approval").querySelectorAll("[role=deletion], [role=insertion]")]).toHaveLength(2);
});

test("the row of an edit counts its lines when it is done", async () => {
  await show(emptyState({ entries: [said(calls("e1", "edit_file", edit.arguments)), gave({ tool_call_id: "e1", content: "Done." })] }));
  expect(one("tool-card").querySelector(".sagents-counts")!.textContent).toBe("+1 −1");
});

/** Waits for a call on a file that the kernel knows. */
async function onFile(text: string, request: Parameters<typeof waiting>[0]): Promise<void> {
  const state = inPlace(request);
  await show({ ...state, files: [{ path: "/a.md", size: text.length }] }, "session", "", {
    answer: (message) => {
      model.files["/a.md"] = text;
      model.reply(message);
    },
  });
}

test("a file that is written over is compared with what is there, and what is far from a change folds", async () => {
  const lines = Array.from({ length: 20 }, (_, n) => `line ${n}`);
  const text = lines.join("\n") + "\n";
  await onFile(text, { ...write, arguments: { file_path: "/a.md", content: text.replace("line 10\n", "line ten\n"), overwrite: true } });
  expect(diff(one("approval"))).toEqual([" line 7", " line 8", " line 9", "-line 10", "+line ten", " line 11", " line 12", " line 13"]);
  const folds = [...one("approval").querySelectorAll<HTMLElement>(".sagents-diff-fold")];
  expect(folds.map((fold) => fold.textContent)).toEqual(["Show 7 unchanged lines", "Show 6 unchanged lines"]);
  folds[0]!.click();
  await settle();
  expect(diff(one("approval"))[0]).toBe(" line 0");
});

test("lines that are replaced are those of the file as it is", async () => {
  const values = { file_path: "/a.md", start_line: 2, end_line: 3, new_content: "TWO\nthree" };
  await onFile("one\ntwo\nthree\nfour\n", { ...write, tool_name: "edit_lines", arguments: values });
  expect(diff(one("approval"))).toEqual(["-two", "+TWO", " three"]);
  expect(one("approval").textContent).toContain("lines 2 to 3");
});

test("a new file is its content, in the colours of its language", async () => {
  await show(inPlace({ ...write, arguments: { file_path: "/a.py", content: "import os\n" } }));
  expect(one("approval").querySelector(".hljs-keyword")!.textContent).toBe("import");
  expect(one("approval").textContent).toContain("new file");
  expect(sent("read_file")).toEqual([]);
});

test("a newline that is missing at the end is told", async () => {
  await show(inPlace({ ...edit, arguments: { file_path: "/a.md", old_string: "a\nb\n", new_string: "a\nb" } }));
  expect(diff(one("approval"))).toEqual([" a", "-b", "+b (no newline at the end)"]);
});

test.each([
  ["code", "import os", "import"],
  ["sql", "SELECT 1", "SELECT"],
  ["query", "select a from b", "select"],
  ["command", 'echo "a"', "echo"],
])("an argument called %s is coloured as code", async (name, value, coloured) => {
  await show(inPlace({ ...remove, arguments: { [name]: value } }));
  expect(one("approval").querySelector(".hljs span")!.textContent).toBe(coloured);
});

test("words to look for are no code, and short values stand beside their names, in the order they came", async () => {
  await show(inPlace({ ...remove, arguments: { query: "palmer penguins", b: "5", a: 5, edge: " x" } }));
  const rows = [...one("approval").querySelectorAll(".sagents-form-row")].map((row) => row.textContent);
  expect(rows).toEqual(["query palmer penguins", 'b "5"', "a 5", 'edge " x"']);
});

const ship = { ...remove, tool_call_id: "s1", tool_name: "ship", arguments: { to: "Oslo" }, defaults: { carrier: "DHL", weight: 1, note: null, toString: "x" }, numbers: { "/weight": "1.0" }, allowed_decisions: undefined };
const rowsIn = (element: Element) => [...element.querySelectorAll(".sagents-form-row")].map((row) => row.textContent);
const DEFAULTS = ["carrier DHL default", "weight 1.0 default", "note null default", "toString x default"];

test("what a call leaves out, and will be used, is shown and marked as default", async () => {
  await show(inPlace(ship, { ...remove, arguments: { toString: "1" } }));
  expect(rowsIn(find("approval")[0]!)).toEqual(["to Oslo", ...DEFAULTS]);
  expect(rowsIn(find("approval")[1]!)).toEqual(['toString "1"']);
});

test("the form offers defaults as well", async () => {
  await show(inPlace(ship));
  await click("edit");
  const label = (field: HTMLElement) => field.closest("label")!.querySelector(".sagents-label")!.textContent;
  expect(find("edit-field").map(label)).toEqual(["to", "carrier default", "toString default", "Other arguments JSON"]);
  await type(find("edit-field")[1]!, "UPS");
  await click("edit-save");
  const edited = { to: "Oslo", carrier: "UPS", weight: 1, note: null, toString: "x" };
  const json = '{\n  "weight": 1.0,\n  "note": null\n}';
  expect(sent("decide")[0]!.decisions).toEqual({ s1: { type: "edit", digest: "dx", arguments: edited, json } });
});

test("a call that was decided on says with which defaults it ran", async () => {
  const metadata = { defaults: ship.defaults };
  await show(emptyState({ entries: [said(calls("s1", "ship", ship.arguments)), gave({ tool_call_id: "s1", content: "So.", metadata, numbers: ship.numbers })] }));
  await open(one("tool-card"));
  expect(rowsIn(one("tool-card"))).toEqual(["to Oslo", ...DEFAULTS]);
});

test.each([["a", "approve"], ["A", "approve"]])("key %s in the card approves", async (key, type) => {
  await show(inPlace(write));
  await press(one("approval").querySelector("[tabindex]")!, key);
  expect(sent("decide")[0]!.decisions).toEqual({ w1: { type, digest: "dw" } });
});

test("E opens the fields, R asks for a reason, and while somebody types no key decides", async () => {
  await show(inPlace(write));
  const body = one("approval").querySelector("[tabindex]")!;
  await press(body, "e");
  await press(find("edit-field")[0]!, "a");
  await press(find("edit-field")[0]!, "r");
  expect(find("edit-field").length).toBeGreaterThan(0);
  [...one("approval").querySelectorAll("button")].find((button) => button.textContent === "Cancel")!.click();
  await settle();
  await press(body, "r");
  await press(one("reject-message"), "a");
  expect(find("reject-message")).toHaveLength(1);
  await press(one("reject-message"), "Escape");
  await press(body.appendChild(document.createElement("textarea")), "a");
  await press(body, "Enter");
  await press(body, "a", { ctrlKey: true });
  expect(sent("decide")).toEqual([]);
});

test.each([
  ["e", () => find("edit-field")[0]!],
  ["r", () => one("reject-message")],
])("Escape closes what %s has opened, and only two more stop the run", async (key, field) => {
  await show(inPlace(write));
  await press(one("approval"), key);
  await press(field(), "Escape");
  expect(field()).toBeUndefined();
  expect(one("approve").textContent).toContain("Approve");
  await press(one("approval"), "Escape");
  expect(sent("cancel")).toEqual([]);
  await press(one("approval"), "Escape");
  expect(sent("cancel")).toHaveLength(1);
});

test("keys do what is allowed only, and nothing from outside of the transcript", async () => {
  await show(inPlace(remove));
  await press(one("approval").querySelector("[tabindex]")!, "e");
  expect(find("edit-field")).toEqual([]);
  for (const id of ["composer", "stop"]) await press(one(id), "a");
  expect(sent("decide")).toEqual([]);
});

test("in the transcript keys are heard by the card that stays in sight, in another card by that one", async () => {
  await show(inPlace(write, remove));
  const answered = () => find("approval").map((card) => "answered" in card.dataset);
  await press(find("approval")[1]!, "a");
  expect(answered()).toEqual([false, true]);
  const log = el.querySelector('[role="log"]')!;
  await press(log, "r");
  expect(find("approval")[0]!.contains(one("reject-message"))).toBe(true);
  await press(one("reject-message"), "a");
  await press(one("reject-message"), "Escape");
  expect(sent("decide")).toEqual([]);
  await press(log, "a");
  expect(sent("decide")).toHaveLength(1);
});

test("what is too long to be shown at once cannot be approved before it was opened", async () => {
  const content = "x".repeat(130_000);
  await show(inPlace({ ...write, arguments: { file_path: "/a.bin", content } }));
  const approve = () => one("approve") as HTMLButtonElement;
  const body = one("approval").querySelector("[tabindex]")!;
  expect(approve().disabled).toBe(true);
  await press(body, "a");
  expect(sent("decide")).toEqual([]);
  one("approval").querySelector<HTMLElement>(".sagents-more")!.click();
  await settle();
  expect(approve().disabled).toBe(false);
  await press(body, "a");
  expect(sent("decide")).toHaveLength(1);
});

test("of what a person would read all is there, without a click", async () => {
  const content = Array.from({ length: 400 }, (_, n) => `line ${n}`).join("\n");
  await show(inPlace({ ...write, arguments: { file_path: "/a.txt", content } }));
  expect(one("approval").textContent).toContain("line 399");
  expect((one("approve") as HTMLButtonElement).disabled).toBe(false);
});

test("always allows the tool from then on; who asks by another way cannot be told so", async () => {
  await show(inPlace(write));
  await click("approve-always");
  expect(sent("decide")[0]!.decisions).toEqual({ w1: { type: "approve", digest: "dw", always: true } });
  const own = inPlace(write);
  await show({ ...own, interrupt: { ...own.interrupt!, type: "payment" } });
  expect(find("approve")).toHaveLength(1);
  expect(find("approve-always")).toHaveLength(0);
});

test("of several cards the first without an answer stays in sight, and approves all", async () => {
  await show(inPlace(write, remove));
  const inSight = () => find("tool-card").map((row) => row.className.includes("in-sight"));
  expect(inSight()).toEqual([true, false]);
  expect(find("approve-all").map((button) => button.textContent)).toEqual(["Approve all 2"]);
  await click("approve", 0);
  expect(inSight()).toEqual([false, true]);
  expect(find("approve-all")).toEqual([]);
});

test("a call that was answered says so as long as the kernel has not", async () => {
  await show(inPlace(write), "session", "", { answer: (message) => message.type === "decide" || model.reply(message) });
  await click("approve");
  expect(one("approval").querySelector(".sagents-chosen")!.textContent).toBe("You chose to approve");
  expect(one("approval").querySelector(".sagents-chosen button")).toBeNull();
});

const ended = { type: "agent_end", seq: 8, run_id: "r1", status: "completed", ts: 4 };

test.each([
  [0, ""],
  [1, "Cells that are run now wait for this answer."],
  [2, "This cell was run again: when this run has ended, it sends its message once more. Stop drops that, too."],
  [4, "This cell was run again: when this run has ended, it sends its message 3 more times. Stop drops that, too."],
])("where %s requests of its cell wait, the view of a run says what waits behind it, until it has ended", async (waiting, text) => {
  await show(inPlace(write), "run", "r1", { waiting });
  const told = () => find("behind").map((line) => line.textContent).join();
  expect(told()).toBe(text);
  const answered = { type: "decision", seq: 5, tool_call_id: "w1", decision: { type: "approve" }, by: "user" };
  model.events([answered, { type: "status_changed", seq: 6, status: "running" }, { type: "agent_start", seq: 7, run_id: "r1", ts: 3 }] as never[]);
  await settle();
  expect(told()).toBe(waiting > 1 ? text : "");
  model.events([ended, { type: "status_changed", seq: 9, status: "idle" }] as never[]);
  await settle();
  expect(told()).toBe("");
});

test("a cell that is run again while its view is there is told of at once", async () => {
  await show(inPlace(write), "run", "r1", { waiting: 1 });
  model.change("waiting", 2);
  await settle();
  expect(one("behind").textContent).toContain("run again");
});

test("the waiting card can stop the run", async () => {
  await show(inPlace(write));
  await click("approval-stop");
  expect(sent("cancel")).toHaveLength(1);
});

test("who answers by keyboard goes on in the same row", async () => {
  await show(inPlace(write));
  one("approve").focus();
  model.events([
    { type: "decision", seq: 5, tool_call_id: "w1", decision: { type: "approve" }, by: "user" },
    { type: "status_changed", seq: 6, status: "running" },
  ]);
  await settle();
  expect(document.activeElement).toBe(one("tool-card").querySelector("summary"));
});

const end = () => [
  { type: "agent_end", seq: 8, run_id: "r1", status: "completed", ts: 4 },
  { type: "status_changed", seq: 9, status: "idle" },
] as never[];

test("then at the next card, whenever it comes, and in the composer when the run is over", async () => {
  await show(inPlace(write));
  one("approve").focus();
  await click("approve");
  const answered = { type: "decision", seq: 5, tool_call_id: "w1", decision: { type: "approve" }, by: "user" };
  model.events([answered, { type: "status_changed", seq: 6, status: "running" }, { type: "agent_start", seq: 6, run_id: "r1", ts: 3 }] as never[]);
  await settle();
  const interrupt = { id: "i2", type: "hitl", action_requests: [remove] };
  model.events([
    { type: "message_end", seq: 6, run_id: "r1", ts: 3, message: { role: "assistant", parts: [calls("x1", "delete_file", remove.arguments)] } },
    { type: "interrupt", seq: 7, run_id: "r1", interrupt },
    { type: "status_changed", seq: 7, status: "interrupted" },
  ] as never[]);
  await settle();
  expect(document.activeElement).toBe(one("approval"));
  await press(document.activeElement!, "a");
  expect(sent("decide").at(-1)!.decisions).toMatchObject({ x1: { type: "approve" } });
  model.events([{ ...answered, seq: 8, tool_call_id: "x1" }, { type: "status_changed", seq: 8, status: "running" }] as never[]);
  await settle();
  model.events(end());
  await settle();
  expect(document.activeElement).toBe(one("composer"));
});

test("of several cards the next has the focus when one is answered", async () => {
  await show(inPlace(write, remove));
  const [first, second] = find("approval");
  first!.focus();
  await press(first!, "a");
  expect(document.activeElement).toBe(second);
});

test("who is elsewhere by then stays there", async () => {
  await show(inPlace(write));
  one("approve").focus();
  await click("approve");
  one("composer").focus();
  await type(one("composer"), "And");
  model.events([
    { type: "decision", seq: 5, tool_call_id: "w1", decision: { type: "approve" }, by: "user" },
    { type: "status_changed", seq: 6, status: "running" },
    { type: "interrupt", seq: 7, run_id: "r1", interrupt: { id: "i2", type: "hitl", action_requests: [remove] } },
    { type: "status_changed", seq: 7, status: "interrupted" },
  ] as never[]);
  await settle();
  expect(find("approval")).toHaveLength(1);
  expect(document.activeElement).toBe(one("composer"));
  const cell = document.body.appendChild(document.createElement("input"));
  one("approval").focus();
  cell.focus();
  model.events(end());
  await settle();
  expect(document.activeElement).toBe(cell);
  cell.remove();
});

test("what had the focus has it again when Jupyter draws the view anew: the composer, or the card", async () => {
  await show(inPlace(write));
  for (const id of ["composer", "approve"]) {
    one(id).focus();
    await showAgain();
    expect(document.activeElement).toBe(one(id === "approve" ? "approval" : id));
  }
  const cell = document.body.appendChild(document.createElement("input"));
  cell.focus();
  await showAgain();
  expect(document.activeElement).toBe(cell);
  cell.remove();
});

test("who was elsewhere in a panel that is drawn anew is in its conversation", async () => {
  await show(inPlace(write));
  one("model").focus();
  await showAgain();
  expect(document.activeElement).toBe(el.querySelector("[role=log]"));
  await showAgain();
  expect(document.activeElement).toBe(el.querySelector("[role=log]"));
});

test.each(["session", "run"])("who has stopped the run in view %s goes on in the composer, or in the conversation", async (view) => {
  await show({ ...inPlace(), status: "running", runs: { r1: { status: "running", started: 1, ended: null } } }, view, "r1");
  one("stop").focus();
  await click("stop");
  model.events([
    { type: "agent_end", seq: 8, run_id: "r1", status: "cancelled", ts: 4 },
    { type: "status_changed", seq: 9, status: "cancelled" },
  ] as never[]);
  await settle();
  expect(find("stop")).toEqual([]);
  expect(document.activeElement).toBe(view === "run" ? el.querySelector("[role=log]") : one("composer"));
});

test("a call that is answered before the others says in its line what it is given, as it was edited", async () => {
  const pay = (id: string, amount: number) => ({ tool_call_id: id, tool_name: "pay", digest: id, arguments: { amount, to: "Ann" } });
  await show(inPlace(pay("p1", 10), pay("p2", 20), pay("p3", 30)));
  await click("approve", 0);
  await click("edit", 1);
  await type(find("edit-field")[0]!, "Bob");
  await click("edit-save");
  const lines = find("approval").map((card) => card.querySelector(".sagents-approval-head")!.textContent);
  expect(lines).toEqual(["pay10 · Ann", "pay20 · Bob", "pay"]);
});

test("Edit leads to the first field", async () => {
  await show(inPlace(write));
  await click("edit");
  expect(document.activeElement).toBe(find("edit-field")[0]);
});

test("a call of no message here, such as a sub-agent's, is asked about below the conversation", async () => {
  await show({ ...waiting(write), entries: [said({ type: "text", text: "I delegate." })] });
  expect(find("approval")).toHaveLength(1);
  expect(find("tool-card")).toEqual([]);
  await click("approve");
  expect(sent("decide")).toHaveLength(1);
});

test("who waits for sub-agents asks nobody for their report, and says what is waited for", async () => {
  const link = { subagents: { childThreadId: "t2" } };
  const task = { tool_call_id: "d1", tool_name: "task", digest: "dd", arguments: { description: "Count." }, allowed_decisions: ["respond"], display_text: "clerk works on it." };
  const state = waiting(task);
  await show({ ...state, entries: [said(calls("d1", "task"))], interrupt: { ...state.interrupt!, type: "tool", message: "clerk works on it.", data: link } });
  expect(find("approval")).toEqual([]);
  expect(one("status").textContent).toBe("Waits for sub-agents");
  expect(el.querySelector("[role=alert]")!.textContent).toBe("");
  expect(one("tool-card").dataset.status).toBe("running");
  expect(el.textContent!.match(/clerk works on it\./g)).toHaveLength(1);

  // Beside it people are asked for something else, and for that only.
  const ask = { tool_call_id: "q1", tool_name: "ask_user", digest: "dq", arguments: { question: "Which?" }, allowed_decisions: ["respond"] };
  const both = waiting(task, ask);
  const parts = [
    { ...state.interrupt!, action_requests: [task], data: link },
    { ...state.interrupt!, action_requests: [ask] },
  ];
  leave();
  await show({ ...both, entries: [said(calls("d1", "task"), calls("q1", "ask_user"))], interrupt: { ...both.interrupt!, type: "multiple", message: "clerk works on it.", parts } });
  expect(find("approval").map((card) => card.dataset.tool)).toEqual(["ask_user"]);
  expect(one("status").textContent).toBe("Needs an answer");
  expect(el.querySelector("[role=alert]")!.textContent).toBe("An answer is needed: ask_user");
  await type(one("answer"), "Both");
  await click("answer-send");
  expect(sent("decide")[0]).toMatchObject({ decisions: { q1: { type: "respond", digest: "dq", answer: "Both" } } });
  expect(Object.keys(sent("decide")[0]!.decisions as object)).toEqual(["q1"]);
  model.events([{ type: "decision", seq: 2, tool_call_id: "q1", decision: { type: "respond" } }]);
  await settle();
  expect(one("status").textContent).toBe("Waits for sub-agents");
});

const order = {
  ...ship,
  arguments: { to: "Oslo", weight: 2.5, boxes: 3, fragile: false, carrier: "DHL", tags: ["a1"] },
  defaults: {},
  numbers: { "/weight": "2.50" },
  parameters: { weight: { type: "number" as const }, to: {}, boxes: { type: "integer" as const }, fragile: { type: "boolean" as const }, carrier: { enum: ["DHL", "UPS", null] } },
};
const fieldOf = (name: string) => find("edit-field").find((field) => field.dataset.field === name) as HTMLInputElement & HTMLSelectElement;
const choose = async (field: HTMLElement) => {
  field.dispatchEvent(new Event("change", { bubbles: true }));
  await settle();
};

test("numbers, yes or no, and choices have a field of their kind, in the order of the schema", async () => {
  await show(inPlace(order));
  await click("edit");
  const kinds = find("edit-field").map((field) => [field.dataset.field, (field as HTMLInputElement).type, (field as HTMLInputElement).value]);
  expect(kinds).toEqual([
    ["weight", "number", "2.50"],
    ["to", "textarea", "Oslo"],
    ["boxes", "number", "3"],
    ["fragile", "checkbox", "on"],
    ["carrier", "select-one", '"DHL"'],
    ["*", "textarea", '{\n  "tags": [\n    "a1"\n  ]\n}'],
  ]);
  expect([...fieldOf("carrier").options].map((option) => option.text)).toEqual(["DHL", "UPS", "null"]);
  expect(document.activeElement).toBe(fieldOf("weight"));
  await type(fieldOf("weight"), "12345678901234567890");
  fieldOf("fragile").checked = true;
  await choose(fieldOf("fragile"));
  fieldOf("carrier").selectedIndex = 2;
  await choose(fieldOf("carrier"));
  await click("edit-save");
  const { s1 } = sent("decide")[0]!.decisions as Record<string, { arguments: JsonObject; json: string }>;
  expect(s1!.arguments).toEqual({ ...order.arguments, weight: 12345678901234567890, fragile: true, carrier: null });
  expect(s1!.json).toContain('"weight":12345678901234567890');
  expect(JSON.parse(s1!.json)).toEqual({ weight: 12345678901234567890, boxes: 3, fragile: true, carrier: null, tags: ["a1"] });
});

test.each([
  ["boxes", "2.5", '"boxes" is a whole number, such as 3.'],
  ["boxes", "", '"boxes" is a whole number, such as 3.'],
  ["weight", "", '"weight" is a number, such as 2.5.'],
])("what is no number is not sent: %s of %j", async (name, text, sentence) => {
  await show(inPlace(order));
  await click("edit");
  await type(fieldOf(name), text);
  await click("edit-save");
  expect(sent("decide")).toEqual([]);
  expect(one("approval").querySelector(".sagents-error-text")!.textContent).toBe(sentence);
  expect(find("edit-field").filter((field) => field.getAttribute("aria-invalid") === "true")).toEqual([fieldOf(name)]);
  // Below its field, which has the focus: the end of a long form is out of sight.
  expect(fieldOf(name).closest("label")!.nextElementSibling!.textContent).toBe(sentence);
  expect(document.activeElement).toBe(fieldOf(name));
  await type(fieldOf(name), "7");
  await click("edit-save");
  expect(sent("decide")).toHaveLength(1);
});

test("why it is not wanted is there again after Escape, and not after Cancel", async () => {
  await show(waiting(write));
  const reason = () => one("reject-message") as HTMLInputElement;
  await click("reject");
  await type(reason(), "Too dear.");
  await press(reason(), "Escape");
  expect(find("reject-message")).toEqual([]);
  await click("reject");
  expect(reason().value).toBe("Too dear.");
  [...one("approval").querySelectorAll("button")].find((button) => button.textContent === "Cancel")!.click();
  await settle();
  await click("reject");
  expect(reason().value).toBe("");
});

test("a button that moves away while it is pressed is clicked all the same", async () => {
  await show(waiting(write));
  const at = (kind: string, clientX: number) => new MouseEvent(kind, { bubbles: true, composed: true, clientX, clientY: 9 });
  const press = async (released: HTMLElement, clientX: number) => {
    one("approve").dispatchEvent(at("pointerdown", 9));
    released.dispatchEvent(at("pointerup", clientX));
    await settle();
  };
  await press(one("approve"), 9); // the browser's own click follows
  await press(one("approval"), 40); // who lets go elsewhere has thought better of it
  expect(sent("decide")).toEqual([]);
  await press(one("approval"), 10);
  expect(sent("decide")).toHaveLength(1);
});

test("what was typed is there again after Escape, and after Cancel what was asked", async () => {
  await show(inPlace(order));
  await click("edit");
  await type(fieldOf("to"), "Bergen");
  await type(fieldOf("weight"), "4");
  await type(fieldOf("*"), "{}");
  await press(fieldOf("to"), "Escape");
  await click("edit");
  expect(["to", "weight", "*"].map((name) => fieldOf(name).value)).toEqual(["Bergen", "4", "{}"]);
  [...one("approval").querySelectorAll("button")].find((button) => button.textContent === "Cancel")!.click();
  await settle();
  await click("edit");
  expect(["to", "weight"].map((name) => fieldOf(name).value)).toEqual(["Oslo", "2.50"]);
});

test("what was typed is there again when Jupyter draws the view anew, and a call shows what Approve runs", async () => {
  await show(inPlace(order));
  await click("edit");
  await type(fieldOf("to"), "Bergen");
  await showAgain();
  expect(one("approval").textContent).toContain("What you wrote is kept: Edit goes on with it, Approve runs what is shown.");
  expect(one("approval").textContent).toContain("Oslo");
  await click("edit");
  expect(fieldOf("to").value).toBe("Bergen");
  [...one("approval").querySelectorAll("button")].find((button) => button.textContent === "Cancel")!.click();
  await settle();
  expect(one("approval").textContent).not.toContain("are kept");
});

test("an edit that was refused is there again when Jupyter draws the view anew", async () => {
  await show(inPlace(order));
  model.answer = (message) => model.receive({ type: "error", id: message.id!, kind: "InvalidDecision", message: "No such town." });
  await click("edit");
  await type(fieldOf("to"), "Bergem");
  await click("edit-save");
  expect(one("approval").textContent).toContain("No such town.");
  await showAgain();
  await click("edit");
  expect(fieldOf("to").value).toBe("Bergem");
});

test("an argument that is not as its tool says is JSON", async () => {
  await show(inPlace({ ...order, arguments: { boxes: 1.5, weight: null, fragile: "no", carrier: "TNT" }, numbers: {} }));
  await click("edit");
  expect(find("edit-field").map((field) => [field.dataset.field, field.tagName])).toEqual([["fragile", "TEXTAREA"], ["carrier", "TEXTAREA"], ["*", "TEXTAREA"]]);
});
