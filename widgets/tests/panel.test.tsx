import { expect, test, vi } from "vitest";
import type { FakeModel } from "../dev/fake";
import { emptyState, scenes } from "../dev/scenes";
import type { Json, Part } from "../src/protocol";
import { asked, calls, click, el, find, gave, leave, model, one, open, press, remove, said, sent, settle, show, type, waiting, write } from "./page";

test("approve sends the digest, once, and locks the buttons until the kernel has answered", async () => {
  await show(waiting(write));
  model.answer = () => {};
  await click("approve");
  expect(sent("decide")).toMatchObject([{ interrupt_id: "i1", decisions: { w1: { type: "approve", digest: "dw" } } }]);
  expect((one("approve") as HTMLButtonElement).disabled).toBe(true);
  expect((one("reject") as HTMLButtonElement).disabled).toBe(true);
  await click("approve");
  expect(sent("decide")).toHaveLength(1);
});

test("an error is shown in the card, which can be used again", async () => {
  await show(waiting(write));
  model.answer = (message) =>
    model.receive({ type: "error", id: message.id!, kind: "StaleApproval", message: "Decided already." });
  await click("approve");
  expect(one("approval").textContent).toContain("Decided already.");
  expect((one("approve") as HTMLButtonElement).disabled).toBe(false);
});

test("reject carries what the person says", async () => {
  await show(waiting(write));
  await click("reject");
  await type(one("reject-message"), "Not today.");
  await click("reject-message-send");
  expect(sent("decide")[0]!.decisions).toEqual({ w1: { type: "reject", digest: "dw", message: "Not today." } });
});

test("edit sends all arguments: texts from their fields, the rest from JSON", async () => {
  await show(waiting(write));
  await click("edit");
  const fields = Object.fromEntries(find("edit-field").map((field) => [field.dataset.field, field as HTMLTextAreaElement]));
  expect(Object.keys(fields)).toEqual(["file_path", "content", "*"]);
  expect(fields.content!.value).toBe("one\ntwo\n");
  await type(fields.content!, "three\n");
  await type(fields["*"]!, '{"overwrite": fals');
  await click("edit-save");
  expect(sent("decide")).toEqual([]);
  expect(one("approval").textContent).toContain("not valid JSON");
  await type(fields["*"]!, '{"overwrite": false}');
  await click("edit-save");
  expect(sent("decide")[0]!.decisions).toEqual({
    w1: { type: "edit", digest: "dw", arguments: { file_path: "/a.md", content: "three\n", overwrite: false } },
  });
});

test("only what is allowed is offered", async () => {
  await show(waiting(remove));
  expect([find("approve").length, find("edit").length, find("reject").length]).toEqual([1, 0, 1]);
});

test("two calls are answered in one message, and the first answer can be changed", async () => {
  await show(waiting(write, remove));
  await click("approve", 0);
  expect(sent("decide")).toEqual([]);
  expect(one("approval").textContent).toContain("You chose to approve; sent when the other calls are answered too.");
  el.querySelector<HTMLElement>(".sagents-chosen button")!.click();
  await settle();
  await click("approve", 1);
  await click("reject", 0);
  await click("reject-message-send");
  expect(sent("decide")).toHaveLength(1);
  expect(sent("decide")[0]!.decisions).toEqual({
    w1: { type: "reject", digest: "dw", message: "" },
    x1: { type: "approve", digest: "dx" },
  });
});

/** Approves what waits, the second call with changes, and the kernel refuses those. */
async function refuseTheSecond(error: { kind: string; tool_call_id?: string }): Promise<void> {
  await show(waiting(write, { ...write, tool_call_id: "w2", digest: "d2" }));
  const errors = vi.fn((message: FakeModel["sent"][number]) =>
    model.receive({ type: "error", id: message.id!, message: "The edited arguments do not fit.", ...error }),
  );
  model.answer = errors;
  await click("edit", 1);
  const field = find("edit-field").find((element) => element.dataset.field === "*")!;
  await type(field, '{"overwrite": "perhaps"}');
  await click("edit-save");
  expect(errors).not.toHaveBeenCalled();
  await click("approve", 0);
  expect(errors).toHaveBeenCalledOnce();
}

test("a refused answer is open again under its error, and the others stay chosen", async () => {
  await refuseTheSecond({ kind: "InvalidDecision", tool_call_id: "w2" });
  const [kept, refused] = find("approval");
  expect(kept!.textContent).toContain("You chose to approve;");
  expect(kept!.querySelector("[data-testid=approval-error]")).toBeNull();
  expect(refused!.querySelector("[data-testid=approval-error]")!.textContent).toBe("The edited arguments do not fit.");
  expect(refused!.textContent).not.toContain("You chose");
  const field = find("edit-field").find((element) => element.dataset.field === "*") as HTMLTextAreaElement;
  expect([field.value, field.disabled]).toEqual(['{"overwrite": "perhaps"}', false]);
  await type(field, '{"overwrite": false}');
  model.answer = (message) => model.reply(message);
  await click("edit-save");
  expect(find("approval-error")).toEqual([]);
  expect(sent("decide").at(-1)!.decisions).toEqual({
    w1: { type: "approve", digest: "dw" },
    w2: { type: "edit", digest: "d2", arguments: { ...write.arguments, overwrite: false } },
  });
});

test("the error of a refused answer stays where it is until that call is answered anew", async () => {
  await refuseTheSecond({ kind: "InvalidDecision", tool_call_id: "w2" });
  const [kept, refused] = find("approval");
  kept!.querySelector<HTMLElement>(".sagents-chosen button")!.click();
  await settle();
  expect(refused!.querySelector("[data-testid=approval-error]")).not.toBeNull();
  await click("edit-save");
  expect(find("approval-error")).toEqual([]);
  expect(refused!.textContent).toContain("You chose to approve with your changes;");
  await click("approve", 0);
  expect(refused!.querySelector("[data-testid=approval-error]")).not.toBeNull();
});

test.each([
  [{ kind: "StaleApproval", tool_call_id: "w2" }, 1],
  [{ kind: "StaleApproval" }, 0],
  [{ kind: "InvalidDecision" }, 0],
  [{ kind: "InvalidDecision", tool_call_id: "of another question" }, 0],
])("after another error no answer counts as chosen: %o", async (error, card) => {
  await refuseTheSecond(error);
  expect(find("approval").map((element) => element.querySelector("[data-testid=approval-error]") !== null)).toEqual([card === 0, card === 1]);
  expect(el.textContent).not.toContain("You chose");
});

test("what somebody else has decided is not asked again", async () => {
  await show({ ...waiting(write, remove), decided: { x1: { type: "approve", by: "user" } } });
  expect(find("approval")).toHaveLength(1);
  await click("approve");
  expect(sent("decide")[0]!.decisions).toEqual({ w1: { type: "approve", digest: "dw" } });
});

test("approve all approves all", async () => {
  await show(waiting(write, remove), "approvals");
  await click("approve-all");
  expect(sent("decide")[0]!.decisions).toEqual({ w1: { type: "approve", digest: "dw" }, x1: { type: "approve", digest: "dx" } });
});

test("arguments show what hides, also in code", async () => {
  await show(waiting({ ...write, tool_name: "run", arguments: { path: "/a\u202egnp.md", code: "x = 'a\u200bb'" } }));
  const card = one("approval");
  expect(card.textContent).toContain("/a\\u{202e}gnp.md");
  expect(card.textContent).toContain("x = 'a\\u{200b}b'");
});

test("the arguments of a call that is done count what is folded", async () => {
  const content = Array.from({ length: 60 }, (_, i) => `line ${i}`).join("\n") + "\n";
  await show(emptyState({ entries: [said({ type: "tool_call", id: "c", name: "note", arguments: { content } })] }));
  const card = one("tool-card");
  await open(card);
  expect(card.textContent).toContain("Show 44 more lines");
  expect(card.textContent).not.toContain("line 16\n");
  card.querySelector<HTMLElement>(".sagents-more")!.click();
  await settle();
  expect(card.textContent).toContain("line 59");
});

test("arguments are never read as HTML or markdown", async () => {
  const content = "<img src=x onerror=alert(1)>\n**bold**";
  await show(waiting({ ...write, arguments: { content } }));
  expect(one("approval").querySelector("img, strong")).toBeNull();
  expect(one("approval").textContent).toContain(content);
});

test("a question is answered by its options, or in words", async () => {
  await show(scenes.question!);
  await click("answer-option", 1);
  expect(sent("decide")[0]!.decisions).toEqual({ q: { type: "respond", digest: "q", answer: "g" } });
});

test("Enter sends, Shift+Enter does not, and a failed message is kept", async () => {
  await show(emptyState());
  const area = one("composer") as HTMLTextAreaElement;
  await type(area, "hello");
  await press(area, "Enter", { shiftKey: true });
  expect(sent("send")).toEqual([]);
  await press(area, "Enter");
  expect(sent("send")).toMatchObject([{ text: "hello" }]);
  expect(area.value).toBe("");
  model.answer = (message) => model.receive({ type: "error", id: message.id!, kind: "Busy", message: "Not now." });
  await type(area, "again");
  await press(area, "Enter");
  expect(area.value).toBe("again");
  expect(el.textContent).toContain("Not now.");
});

test("while a run is active, Enter queues, and Ctrl or Cmd with Enter and the button steer", async () => {
  await show(scenes.streaming!);
  const area = one("composer") as HTMLTextAreaElement;
  for (const key of ["Enter", "Ctrl+Enter"]) expect(area.placeholder).toContain(key);
  for (const [text, how] of [["later", {}], ["now", { ctrlKey: true }], ["at once", { metaKey: true }]] as const) {
    await type(area, text);
    await press(area, "Enter", how);
  }
  await type(area, "by hand");
  await click("steer");
  expect(sent("send").map(({ text, when }) => [text, when])).toEqual([
    ["later", undefined], ["now", "steer"], ["at once", "steer"], ["by hand", "steer"],
  ]);
  expect(area.value).toBe("");
});

const answer = (more: object) => ({ seq: 0, run_id: "r1", ts: 0, message: { role: "assistant", parts: [{ type: "text", text: "So f" }], ...more } }) as never;

test.each([
  ["failed", "error", [asked("Go."), answer({ error: "The key was not accepted." })]],
  ["was stopped", "cancelled", [asked("Go."), answer({ error: "The run was cancelled.", stop_reason: "aborted" })]],
  ["was stopped before a word", "cancelled", [asked("Go.")]],
  ["was stopped after a call", "cancelled", [asked("Go."), said(calls("c1", "slow")), gave({ tool_call_id: "c1", content: "Done." })]],
  ["failed before a word, in a conversation that was opened again", "paused", [asked("Go.")]],
  ["failed, in one that was opened again", "paused", [asked("Go."), answer({ error: "No." })]],
  ["was cut", "idle", [asked("Go."), answer({ stop_reason: "max_tokens" })]],
  ["has calls that a pause came before", "paused", [asked("Go."), answer({ stop_reason: "tool_use" })]],
])("an answer that %s can be asked for again, and why not is a sentence", async (_, status, entries) => {
  await show(emptyState({ status, entries }));
  expect(one("retry").textContent).toBe(status === "paused" ? "Continue" : "Try again");
  await click("retry");
  expect(sent("retry")).toHaveLength(1);
  model.answer = (message) => model.receive({ type: "error", id: message.id!, kind: "Busy", message: "It is running." });
  await click("retry");
  expect(one("retry").parentElement!.querySelector('[role="alert"]')!.textContent).toBe("It is running.");
  model.events([{ type: "status_changed", seq: 50, status: "running" }]);
  await settle();
  expect(find("retry")).toEqual([]);
});

test.each([
  ["paused", "Continue"],
  ["error", "Try again"],
  ["cancelled", "Try again"],
])("in its cell a run that is %s goes on as itself, if it is the last", async (status, label) => {
  const runs = { r1: { status, started: 1, ended: 2 } };
  const state = { status, runs, entries: [asked("Go."), answer({ error: "No.", stop_reason: "aborted" })] } as never;
  await show(emptyState(state), "run", "r1");
  expect(one("retry").textContent).toBe(label);
  await click("retry");
  expect(sent("retry")).toMatchObject([{ run_id: "r1" }]);
  model.events([{ type: "agent_start", seq: 50, run_id: "r1", ts: 3 }, { type: "status_changed", seq: 51, status: "running" }]);
  await settle();
  expect(find("retry")).toEqual([]);
  expect(one("status").textContent).toBe("Running");
  leave();
  await show(emptyState({ ...(state as object), runs: { ...runs, r2: { status, started: 3, ended: 4 } } } as never), "run", "r1");
  expect(find("retry")).toEqual([]);
});

test("in a paused cell nothing is in progress in it, and lists in calls that wait are counted", async () => {
  const todos = [{ content: "Look", status: "in_progress" as const }];
  const call = { type: "tool_call", id: "c", name: "write_todos", arguments: { merge: true, todos } };
  const paused = { status: "paused", runs: { r1: { status: "paused", started: 1, ended: 2 } }, todos, entries: [said(call)] };
  await show(emptyState(paused as never), "run", "r1");
  expect(one("todo").dataset.status).toBe("unfinished");
  expect(one("tool-card").textContent).toContain("true · 1 item");
});

test.each([
  ["a whole answer", "session", { status: "idle", entries: [asked("Go."), answer({})] }],
  ["nothing at all", "session", { status: "idle" }],
  ["a failure in the view of an older run", "run", { status: "error", runs: { r2: { status: "error", started: 1, ended: 2 } }, entries: [asked("Go."), answer({ error: "No." })] }],
])("after %s there is nothing to try again", async (_, view, state) => {
  await show(emptyState(state as never), view, "r1");
  expect(find("retry")).toEqual([]);
});

test("after a stop within a call the model can be asked to go on, which does not run the call again by itself", async () => {
  const stopped = gave({ tool_call_id: "c1", content: "Cancelled: the run was cancelled.", status: "cancelled" });
  await show(emptyState({ status: "cancelled", entries: [asked("Go."), said(calls("c1", "slow")), stopped] } as never));
  expect(one("retry").textContent).toBe("Continue");
  expect(one("retry").getAttribute("title")).toContain("does not run again unless it asks for it");
  await click("retry");
  expect(sent("retry")).toHaveLength(1);
});

test("where nothing runs there is nothing to steer, and Ctrl+Enter just sends", async () => {
  await show(emptyState());
  expect(find("steer")).toEqual([]);
  await type(one("composer"), "hello");
  await press(one("composer"), "Enter", { ctrlKey: true });
  expect(sent("send")[0]).not.toHaveProperty("when");
});

test("arrow up brings what was said before, arrow down the way back, and the draft is kept", async () => {
  await show(emptyState({ entries: [asked("first"), said({ type: "text", text: "Yes." }), asked("second\nline"), asked("second\nline")] }));
  const area = one("composer") as HTMLTextAreaElement;
  const at = (place: number) => area.setSelectionRange(place, place);
  await type(area, "draft");
  const seen: string[] = [];
  for (const key of ["ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown", "ArrowDown"]) {
    if (key === "ArrowUp") at(0);
    await press(area, key);
    seen.push(area.value);
  }
  expect(seen).toEqual(["second\nline", "first", "first", "second\nline", "draft", "draft"]);
});

test("an arrow moves the caret as long as there is a line for it", async () => {
  await show(emptyState({ entries: [asked("first")] }));
  const area = one("composer") as HTMLTextAreaElement;
  await type(area, "one\ntwo");
  area.setSelectionRange(5, 5);
  await press(area, "ArrowUp");
  expect(area.value).toBe("one\ntwo");
  area.setSelectionRange(2, 2);
  await press(area, "ArrowUp");
  expect(area.value).toBe("first");
});

test("what was made of an earlier message is sent as it is, and its source stays", async () => {
  await show(emptyState({ entries: [asked("first")] }));
  const area = one("composer") as HTMLTextAreaElement;
  await press(area, "ArrowUp");
  await type(area, "first, again");
  await press(area, "ArrowDown");
  expect(area.value).toBe("");
  await press(area, "ArrowUp");
  await press(area, "Enter");
  expect(sent("send")).toMatchObject([{ text: "first, again" }]);
  await press(area, "ArrowUp");
  expect(area.value).toBe("first");
});

test("a draft and its focus stay when the first file comes", async () => {
  await show(emptyState());
  one("composer").focus();
  await type(one("composer"), "draft");
  const composer = one("composer") as HTMLTextAreaElement;
  model.events([{ type: "file_updated", seq: 9, path: "/a.md", entry: { path: "/a.md", size: 1 } }]);
  await settle();
  expect(el.querySelectorAll("[role=tab]")).toHaveLength(2);
  expect([one("composer"), composer.value, document.activeElement]).toEqual([composer, "draft", composer]);
});

test("keys typed in the panel do not reach the notebook", async () => {
  await show(emptyState());
  const heard = vi.fn();
  document.body.addEventListener("keydown", heard);
  await press(one("composer"), "a");
  await press(one("composer"), "Enter", { shiftKey: true });
  document.body.removeEventListener("keydown", heard);
  expect(heard).not.toHaveBeenCalled();
  expect(one("sagents-panel").dataset.lmSuppressShortcuts).toBe("true");
});

test.each([
  ["the conversation", () => el.querySelector('[role="log"]')!],
  ["the message that is written", () => one("composer")],
])("Stop and Esc twice in %s cancel; Esc once, held down, or while an input method composes does not", async (_, where) => {
  await show(scenes.streaming!);
  const log = where();
  await press(log, "Escape", { isComposing: true });
  await press(log, "Escape");
  await press(log, "Escape", { repeat: true });
  expect(sent("cancel")).toHaveLength(0);
  expect(one("stop").textContent).toBe("Stop: Esc once more");
  await press(log, "Escape");
  expect(sent("cancel")).toHaveLength(1);
  await click("stop");
  expect(sent("cancel")).toHaveLength(2);
});

test("a view of one run stops that run", async () => {
  await show(scenes.streaming!, "run", "r2");
  await click("stop");
  expect(sent("cancel")).toMatchObject([{ run_id: "r2" }]);
});

test("what waits is listed, and can be taken back", async () => {
  const queued = [
    { run_id: "", when: "steer", text: "Shorter, please" },
    { run_id: "r9", when: "queue", text: "And for 2025?" },
  ];
  await show({ ...scenes.streaming!, queued });
  expect(find("queued").map((item) => item.textContent)).toEqual([
    "For this runShorter, pleaseTake back",
    "NextAnd for 2025?Take back",
  ]);
  for (const item of find("queued")) {
    item.querySelector("button")!.click();
    await settle();
  }
  expect(sent("withdraw")).toMatchObject(queued);
  model.events([{ type: "message_withdrawn", seq: 50, run_id: "r9", text: "And for 2025?" }]);
  await settle();
  expect(find("queued")).toHaveLength(1);
});

test("what is taken back can be written on: its text before the draft, with its images", async () => {
  const queued = [{ run_id: "r9", when: "queue", text: "And this?\n[image]" }];
  const parts = [{ type: "text", text: "And this?" }, { type: "image", data: "aGk=", mime_type: "image/png" }];
  const message = { role: "user", parts };
  const answer = (request: any) => request.type === "withdraw" && model.receive({ type: "reply", id: request.id, message } as never);
  await show({ ...scenes.streaming!, queued }, "session", "", { answer: answer as never });
  model.receive({ type: "snapshot", seq: 1, state: { ...scenes.streaming!, queued } });
  await settle();
  await type(one("composer"), "Or that?");
  one("queued").querySelector("button")!.click();
  await settle();
  expect((one("composer") as HTMLTextAreaElement).value).toBe("And this?\nOr that?");
  expect(find("attached").map((item) => item.title)).toEqual(["Image 2, 3 B"]);
  expect(document.activeElement).toBe(one("composer"));
});

test("Stop is there before the first word from the kernel, and gone after the run", async () => {
  await show(emptyState(), "run", "r1", { answer: () => {} });
  expect(find("stop")).toHaveLength(1);
  model.receive({ type: "snapshot", seq: 1, state: scenes.done! });
  await settle();
  expect(find("stop")).toHaveLength(0);
});

test("a run's view shows its own messages only", async () => {
  const [first, ...others] = scenes.done!.entries;
  const state = { ...scenes.done!, entries: [{ ...first!, run_id: "r0" }, ...others] };
  await show(state, "run", "r1");
  expect(find("entry").map((entry) => entry.dataset.role)).toEqual(["assistant", "assistant"]);
});

test("streamed text grows in place and becomes an entry", async () => {
  await show(emptyState({ status: "running", runs: { r1: { status: "running", started: 1, ended: null } } }));
  model.events([{ type: "message_start", seq: 2, run_id: "r1", message: { role: "assistant" } }]);
  model.events([{ type: "message_update", seq: 3, delta: { type: "text", text: "# Title\n\nSome **bo" } }]);
  await settle();
  const heading = one("partial").querySelector("h1");
  model.events([{ type: "message_update", seq: 4, delta: { type: "text", text: "ld** text" } }]);
  await settle();
  expect(one("partial").querySelector("h1")).toBe(heading);
  expect(one("partial").querySelector("strong")!.textContent).toBe("bold");
  model.events([
    { type: "message_end", seq: 5, run_id: "r1", message: { role: "assistant", parts: [{ type: "text", text: "# Title\n\nSome **bold** text" }] } },
  ]);
  await settle();
  expect(find("partial")).toHaveLength(0);
  expect(find("entry")).toHaveLength(1);
});

test("the end of an answer changes nothing that is on the screen", async () => {
  await show(emptyState({ status: "running", runs: { r1: { status: "running", started: 1, ended: null } } }));
  const text = "# Title\n\nA list:\n\n- one\n- **two**\n\n```js\nlet a = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThe end";
  const shown = () => [...el.querySelectorAll("article[data-role=assistant] *")];
  const say = async (seq: number, parts: Part[]) => {
    model.events([{ type: "message_start", seq, run_id: "r1", message: { role: "assistant" } }]);
    for (const part of parts) {
      const { type, text } = part as Extract<Part, { type: "text" }>;
      for (const piece of text.match(/[^]{1,7}/g)!) model.events([{ type: "message_update", seq: ++seq, delta: { type, text: piece } }]);
    }
    await settle();
    const before = shown();
    model.events([{ type: "message_end", seq: ++seq, run_id: "r1", message: { role: "assistant", parts } }]);
    await settle();
    expect(shown()).toEqual(before);
    expect(shown().every((node, index) => node === before[index])).toBe(true);
    return seq + 1;
  };
  const seq = await say(2, [{ type: "text", text }]);
  await say(seq, [{ type: "thinking", text: "Well." }, { type: "text", text }]);
  expect(find("partial")).toHaveLength(0);
  expect(find("entry").map((entry) => entry.querySelectorAll("h1, pre, table").length)).toEqual([3, 3]);
  expect(el.querySelector("[aria-busy]")).toBeNull();
});

test("a file is read when it is picked, and again when it changes", async () => {
  await show(scenes.done!, "files");
  model.files["/report.md"] = "# Penguins";
  find("file").find((row) => row.dataset.path === "/report.md")!.click();
  await settle();
  expect(one("file-viewer").querySelector("h1")!.textContent).toBe("Penguins");
  model.files["/report.md"] = "# Better";
  model.events([{ type: "file_updated", seq: 9, path: "/report.md", entry: { path: "/report.md", size: 8, modified: 2e9 } }]);
  await settle();
  await settle();
  expect(one("file-viewer").querySelector("h1")!.textContent).toBe("Better");
});

test.each([
  ["a,b\n" + "1,2\n".repeat(250), 200, "The first 200 of 250 rows; see Raw for all."],
  ["a,b\n" + "1,2\n".repeat(400_000), 200, "The first 200 rows; the file is longer than what is shown here."],
  ["a,b\n" + `1,${"x".repeat(90_000)}\n`.repeat(3), 2, "The first 2 rows; the file is longer than what is shown here."],
  ["a,b\n1,2\n" + `1,"${"x\n".repeat(200_000)}"\n`, 1, "The first 1 row; the file is longer than what is shown here."],
  ["a,b\n1,2\n3,4", 2, ""],
])("a table says how many rows it shows, and counts none that the kernel has cut", async (text, rows, said) => {
  await show(scenes.done!, "files");
  model.files["/data.csv"] = text;
  model.events([{ type: "file_updated", seq: 9, path: "/data.csv", entry: { path: "/data.csv", size: text.length } }]);
  await settle();
  find("file").find((row) => row.dataset.path === "/data.csv")!.click();
  await settle();
  expect(one("file-viewer").querySelectorAll("tbody tr")).toHaveLength(rows);
  expect(one("file-viewer").querySelector(".sagents-viewer-body .sagents-faint")?.textContent ?? "").toBe(said);
});

test("a table without one whole row is shown raw, and said to go on", async () => {
  await show(scenes.done!, "files");
  model.files["/data.csv"] = `a,b\n1,${"x".repeat(300_000)}\n`;
  model.events([{ type: "file_updated", seq: 9, path: "/data.csv", entry: { path: "/data.csv", size: 300_008 } }]);
  await settle();
  find("file").find((row) => row.dataset.path === "/data.csv")!.click();
  await settle();
  expect(one("file-viewer").querySelector("table")).toBeNull();
  expect(one("file-viewer").textContent).toContain("The first 200,000 characters; the file goes on.");
});

test("each view shows its part", async () => {
  for (const [view, id] of [["todos", "todo"], ["files", "file"], ["chat", "composer"]] as const) {
    await show(scenes.done!, view);
    expect(find(id).length).toBeGreaterThan(0);
    leave();
  }
});

test("ids that a provider uses twice keep each card its own result", async () => {
  const call = (n: number) => ({ type: "tool_call" as const, id: "same", name: "ls", arguments: { n } });
  const result = (content: string, is_error: boolean) => ({ type: "tool_result" as const, tool_call_id: "same", name: "ls", content, is_error });
  const entry = (role: string, part: object) => ({ seq: 0, run_id: "r1", ts: 0, message: { role, parts: [part] } }) as never;
  await show(
    emptyState({
      entries: [entry("assistant", call(1)), entry("tool", result("first", true)), entry("assistant", call(2)), entry("tool", result("second", false))],
      tools: { same: { name: "ls", status: "completed", display_text: null, duration: 1 } },
    }),
  );
  expect(find("tool-card").map((card) => card.dataset.status)).toEqual(["failed", "completed"]);
});

test("a panel whose kernel is gone is closed, and says what it knew", async () => {
  await show(scenes.streaming!);
  model.fire("comm_live_update");
  await settle();
  expect(one("status").dataset.status).toBe("closed");
  expect(find("stop")).toHaveLength(0);
  expect((one("composer") as HTMLTextAreaElement).disabled).toBe(true);
  expect(find("entry").length).toBeGreaterThan(0);
});

test("of a kernel that does not answer the panel says so, until it does", async () => {
  await show(scenes.streaming!);
  expect(find("silent")).toHaveLength(0);
  model.answer = () => {};
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  one("stop").click();
  await vi.advanceTimersByTimeAsync(11_000); // and what is drawn then
  vi.useRealTimers();
  await settle();
  expect(one("silent").textContent).toContain("restarted from another page");
  model.receive({ type: "reply", id: sent("cancel")[0]!.id! });
  await settle();
  expect(find("silent")).toHaveLength(0);
});

test("what a kernel's end cut off is unfinished, and the panel says how a kept conversation goes on", async () => {
  await show({ ...scenes.doubt!, kept: true });
  model.fire("comm_live_update");
  await settle();
  expect(one("tool-card").textContent).toContain("Unfinished");
  expect(find("answer-option")).toHaveLength(0);
  expect(one("lost").textContent).toContain("%load_ext sagents_nb and %agent load conversation-1 go on");
  leave();
  await show(scenes.doubt!); // which no store has
  model.fire("comm_live_update");
  await settle();
  expect(one("lost").textContent).not.toContain("%agent load");
  leave();
  await show({ ...scenes.doubt!, kept: true, session_id: "session-0123456789ab" });
  model.receive({ type: "closed" });
  await settle();
  expect(find("lost")).toHaveLength(0);
});

test("what a tool has refused is told calmly, live and of one that was loaded, and what it said is no error", async () => {
  const result = { tool_call_id: "w1", content: "/a.md exists already.", is_error: true, status: "declined" };
  const entries = [said(calls("w1", "write_file", { file_path: "/a.md", content: "x" })), gave(result)];
  for (const tools of [{}, { w1: { name: "write_file", status: "declined", display_text: "Writing /a.md" } }]) {
    await show(emptyState({ entries, tools } as never));
    expect(one("tool-card").dataset.status).toBe("declined");
    expect(one("tool-card").querySelector(".sagents-tool-word")!.textContent).toBe("Not done");
    await open(one("tool-card"));
    expect(one("tool-card").textContent).toContain("Result/a.md exists already.");
    expect(el.querySelector(".sagents-result-error")).toBeNull();
    leave();
  }
});

test("where the notebook takes cells, the lines that go on with what was kept are put into one", async () => {
  await show({ ...scenes.doubt!, kept: true });
  model.fire("comm_live_update");
  await settle();
  one("lost").querySelector("button")!.click(); // a page without a notebook: nothing happens, and the lines stand there
  expect(one("lost").textContent).toContain("go on with what was kept. Put them in a cell");
});

test("of a call in doubt whose tool is gone it is no advice to reject, which is not offered", async () => {
  const interrupt = scenes.doubt!.interrupt!;
  const requests = interrupt.action_requests!.map((request) => ({ ...request, missing: true }));
  await show({ ...scenes.doubt!, interrupt: { ...interrupt, action_requests: requests } });
  expect(one("missing").textContent).toContain("%agent tools add, or do not run it again.");
});

test("a call in doubt says what happened and offers three answers, nothing else", async () => {
  await show(scenes.doubt!);
  const card = one("approval");
  expect(card.textContent).toContain("Did this call run? The kernel ended while it was at work");
  expect(card.textContent).toContain("landlord");
  expect(card.textContent).not.toContain("did not run', 'retry'");
  expect([...card.querySelectorAll("button")].map((button) => button.textContent)).toEqual(["It ran", "It did not run", "Run it again"]);
  expect(find("answer")).toHaveLength(0);
  expect(one("status").textContent).toBe("Needs an answer");
  expect(one("tool-card").dataset.status).toBe("doubt");
});

test.each([[0, "ran"], [1, "did not run"], [2, "retry"]])("answer %i of a call in doubt is %s", async (index, answer) => {
  await show(scenes.doubt!);
  model.answer = () => {};
  await click("answer-option", index);
  expect(sent("decide")).toMatchObject([{ interrupt_id: "i1", decisions: { t1: { type: "respond", digest: "dt", answer } } }]);
  expect((one("answer-option") as HTMLButtonElement).disabled).toBe(true);
});

test("a call that waits for a person says so in the transcript, and a free one beside it waits too", async () => {
  const call = (id: string, name: string) => ({ type: "tool_call" as const, id, name });
  const message = { role: "assistant", parts: [call("w1", "write_file"), call("l1", "ls")] };
  await show({
    ...waiting(write),
    entries: [{ seq: 3, run_id: "r1", ts: 1, message }],
    runs: { r1: { status: "interrupted", started: 1, ended: 2 } },
  });
  const cards = [...el.querySelectorAll<HTMLElement>("[data-testid=tool-card]")];
  expect(cards.map((card) => card.dataset.status)).toEqual(["interrupted", "pending"]);
});

const long = Array.from({ length: 60 }, (_, n) => `Paragraph ${n} ${"goes on ".repeat(60)}\n\n\`\`\`js\nlet a = ${n};\n\`\`\``).join("\n\n");

test("what a long answer has said stays untouched while it goes on, and at its end", async () => {
  await show(emptyState({ status: "running", runs: { r1: { status: "running", started: 1, ended: null } } }));
  const half = long.length / 2;
  model.events([
    { type: "message_start", seq: 2, run_id: "r1", message: { role: "assistant" } },
    { type: "message_update", seq: 3, delta: { type: "text", text: long.slice(0, half) } },
  ]);
  await settle();
  const runs = () => [...el.querySelectorAll(".sagents-md-run")];
  const touched: Node[] = [];
  const watcher = new MutationObserver((changes) => touched.push(...changes.map((change) => change.target)));
  watcher.observe(el, { childList: true, subtree: true, characterData: true });
  const said = runs().slice(0, -1);
  expect(said.length).toBeGreaterThan(2);
  for (let at = half, seq = 4; at < long.length; at += 500, seq += 1) {
    model.events([{ type: "message_update", seq, delta: { type: "text", text: long.slice(at, at + 500) } }]);
    await settle();
  }
  expect(touched.length).toBeGreaterThan(10);
  expect(runs().length).toBeGreaterThan(said.length + 2);
  expect(said.every((run, index) => run === runs()[index])).toBe(true);
  expect(touched.filter((node) => said.some((run) => run.contains(node)))).toEqual([]);
  touched.length = 0;
  const written = [...el.querySelectorAll("article *")];
  model.events([{ type: "message_end", seq: 9999, run_id: "r1", message: { role: "assistant", parts: [{ type: "text", text: long }] } }]);
  await settle();
  expect(find("entry")).toHaveLength(1);
  const stays = [...el.querySelectorAll("article *")];
  expect(stays.length).toBe(written.length);
  expect(stays.every((node, index) => node === written[index])).toBe(true);
  expect(touched.filter((node) => node.parentElement?.closest("article"))).toEqual([]);
  watcher.disconnect();
});

test("a long answer that is opened is drawn from its end on, in batches, and then is all there", async () => {
  const drawn: string[] = [];
  const watcher = new MutationObserver(() => drawn.push(el.querySelector("article .sagents-md")?.textContent ?? ""));
  watcher.observe(el, { childList: true, subtree: true });
  const text = Array.from({ length: 5 }, () => long).join("\n\n");
  await show(emptyState({ entries: [said({ type: "text", text })] }));
  await vi.waitFor(() => expect(el.querySelectorAll("article pre")).toHaveLength(300), { timeout: 100_000 });
  watcher.disconnect();
  const first = drawn.find(Boolean)!;
  expect(first).toContain("let a = 59;");
  expect(first.length).toBeLessThan(text.length / 8);
  expect(new Set(drawn.map((shown) => shown.length)).size).toBeGreaterThan(3);
});

test("what begins off the screen is plain text until the reader comes near", async () => {
  const watched = new Map<Element, () => void>();
  vi.stubGlobal("IntersectionObserver", class {
    constructor(private look: (changes: object[]) => void) {}
    observe = (element: Element) => watched.set(element, () => this.look([{ isIntersecting: true }]));
    disconnect = () => {};
  });
  try {
    const text = `**Bold** words\n\n\`\`\`js\nlet a = 1;\n\`\`\`\n\n${"More. ".repeat(400)}`;
    await show(emptyState({ entries: Array.from({ length: 10 }, () => said({ type: "text", text })) }));
    const [oldest, latest] = [find("entry")[0]!, find("entry").at(-1)!];
    expect(latest.querySelector("strong")!.textContent).toBe("Bold");
    expect(oldest.querySelector("strong")).toBeNull();
    expect(oldest.textContent).toContain(text);
    watched.get(oldest)!();
    await settle();
    expect(oldest.querySelector("strong")!.textContent).toBe("Bold");
    expect(oldest.querySelector(".hljs")).toBeNull();
    watched.get(oldest.querySelector(".sagents-code")!)!();
    await settle();
    expect(oldest.querySelector(".hljs")!.textContent).toBe("let a = 1;");
  } finally {
    vi.unstubAllGlobals();
  }
});

test("what begins off the screen is drawn and laid out by and by while the page has nothing to do", async () => {
  const idle: (() => void)[] = [];
  const laidOut = vi.spyOn(Element.prototype, "getBoundingClientRect");
  vi.stubGlobal("requestIdleCallback", (work: () => void) => idle.push(work));
  vi.stubGlobal("IntersectionObserver", class {
    observe = () => {};
    disconnect = () => {};
  });
  try {
    const text = `**Bold** words. ${"More. ".repeat(400)}`;
    await show(emptyState({ entries: Array.from({ length: 10 }, () => said({ type: "text", text })) }));
    const drawn = () => find("entry").filter((entry) => entry.querySelector("strong")).length;
    for (let before = drawn(); before < 10; before++) {
      expect(idle).toHaveLength(1); // one at a time, so that no frame is late
      laidOut.mockClear();
      idle.pop()!();
      await settle();
      expect(drawn()).toBe(before + 1);
      const asked = laidOut.mock.contexts as Element[];
      expect(find("entry").filter((entry) => asked.some((block) => entry.contains(block) && block.matches(".sagents-md-run *")))).toHaveLength(1);
    }
    expect(idle).toHaveLength(0);
  } finally {
    laidOut.mockRestore();
    vi.unstubAllGlobals();
  }
});

test("of a long conversation the latest are drawn first, and soon all, in their order", async () => {
  const entries = Array.from({ length: 90 }, (_, n) => said({ type: "text", text: `Answer ${n}. ${"More. ".repeat(400)}` }));
  const counts = new Set<number>();
  const watcher = new MutationObserver(() => counts.add(find("entry").length));
  watcher.observe(el, { childList: true, subtree: true });
  await show(emptyState({ entries }));
  await vi.waitFor(() => expect(find("entry").map((entry) => entry.textContent)).toEqual(entries.map((_, n) => expect.stringContaining(`Answer ${n}.`))), { timeout: 100_000 });
  watcher.disconnect();
  const grown = [...counts].filter((count) => count > 0);
  expect(grown[0]).toBeLessThan(30);
  expect(grown.length).toBeGreaterThan(3);
  model.events([{ type: "message_end", seq: 999, run_id: "r1", message: { role: "assistant", parts: [{ type: "text", text: "One more." }] } }]);
  await settle();
  expect(find("entry")).toHaveLength(91);
});

test.each([
  ["5,000 quotes", `${">".repeat(5_000)} x`],
  ["3,000 items", `${"- ".repeat(3_000)}x`],
])("after an answer of %s in each other there are its text, the card and the composer", async (_, text) => {
  await show({ ...waiting(write), entries: [said({ type: "text", text }), said({ type: "text", text: "Later." })] });
  const [odd, later] = find("entry");
  expect(odd!.textContent).toContain("x");
  expect(later!.textContent).toContain("Later.");
  expect([find("approve").length, find("composer").length]).toEqual([1, 1]);
});

test("a message that cannot be drawn is shown as plain text, and takes nothing with it", async () => {
  const error = vi.spyOn(console, "error").mockImplementation(() => {});
  const call = { type: "tool_call", id: "c", name: "ls", arguments: { path: "/a" } };
  await show({ ...waiting(write), entries: [said({ type: "text", text: "**First.**" }, { type: "text", text: 7 }, call), said({ type: "text", text: "Later." })] });
  expect(find("entry").map((entry) => entry.textContent)).toEqual([expect.stringMatching(/\*\*First\.\*\*\s+7\s+ls \{\s+"path": "\/a"\s+\}/), expect.stringContaining("Later.")]);
  expect(error).toHaveBeenCalled();
  expect([find("approve").length, find("composer").length]).toEqual([1, 1]);
  error.mockRestore();
});

test("an answer that cannot be drawn while it streams in is plain, and drawn again once it can be", async () => {
  const error = vi.spyOn(console, "error").mockImplementation(() => {});
  await show(emptyState({ status: "running", partial: { run_id: "r1", seq: 2, parts: [{ type: "text", text: 7 as never }] } }));
  expect(one("entry").textContent).toContain("7");
  model.events([{ type: "message_end", seq: 5, run_id: "r1", message: { role: "assistant", parts: [{ type: "text", text: "**Whole**" }] } }]);
  await settle();
  expect(find("entry").map((entry) => entry.querySelector("strong")?.textContent)).toEqual(["Whole"]);
  error.mockRestore();
});

test("arguments that cannot be drawn are said to be so, and can be decided on", async () => {
  const error = vi.spyOn(console, "error").mockImplementation(() => {});
  let deep: Json = null;
  for (let level = 0; level < 50_000; level++) deep = [deep];
  await show(waiting({ ...write, arguments: { deep } }));
  expect(one("approval").textContent).toContain("cannot be shown");
  await click("edit");
  expect(one("approval").textContent).toContain("cannot be shown");
  one("approval").querySelector<HTMLElement>(".sagents-plain")!.click();
  await settle();
  await click("reject");
  await click("reject-message-send");
  expect(sent("decide")).toHaveLength(1);
  error.mockRestore();
});

test("the head of a card hides nothing: bidi, newlines and look-alikes are shown for what they are", async () => {
  const display_text = "Deleting /tmp/a\u202egnp.\nApproved already: p\u0430y";
  await show(waiting({ ...remove, tool_name: "delete\u200b_file", display_text }), "approvals");
  const head = el.querySelector(".sagents-approval-head")!;
  expect(head.textContent).toBe("delete\\u{200b}_fileDeleting /tmp/a\\u{202e}gnp.\\u{000a}Approved already: p\u0430y");
  expect([...head.querySelectorAll("[title]")].map((mark) => mark.getAttribute("title"))).toEqual([
    "U+200B zero-width space",
    "U+202E right-to-left override",
    "U+000A newline",
    "U+0430 of another script than the word around it",
  ]);
  expect(one("approval").getAttribute("aria-label")).toBe("Approval of delete\\u{200b}_file");
});

test("whatever a model names in one line is shown for what it is", async () => {
  const odd = "a\u202eb";
  const call = { type: "tool_call", id: "c", name: odd, arguments: { path: odd } };
  const partial = { run_id: "r1", seq: 9, parts: [{ type: "tool_call" as const, index: 0, id: "d", name: odd, text: odd }] };
  const question = { ...remove, allowed_decisions: ["respond"], arguments: { question: odd, options: [odd] } };
  await show({
    ...waiting({ ...write, tool_call_id: "w2", arguments: { [odd]: "text" } }, question),
    interrupt: { id: "i1", type: "hitl", run_id: "r1", message: odd, action_requests: [{ ...write, arguments: { [odd]: "text" } }, question] },
    entries: [said(call, { type: "file", name: odd })],
    partial,
    todos: [{ content: odd }],
    files: [{ path: `/${odd}` }],
  });
  await click("edit");
  expect(find("tool-card")[0]!.textContent).toContain("a\\u{202e}ba\\u{202e}b");
  // As the values of attributes and fields it may be raw: they are no text of the page.
  expect(el.textContent).not.toContain("\u202e");
});

test("who sends a message is led to the newest, also from far above", async () => {
  await show(emptyState({ entries: [asked("Go."), answer({})] }), "chat");
  const pane = el.querySelector<HTMLElement>(".sagents-transcript")!;
  Object.defineProperty(pane, "scrollHeight", { value: 1000 });
  pane.dispatchEvent(new Event("wheel"));
  pane.scrollTop = 10;
  pane.dispatchEvent(new Event("scroll"));
  model.events([{ type: "status_changed", seq: 50, status: "running" }]);
  await settle();
  expect(pane.scrollTop).toBe(10);
  const told: number[] = [];
  el.addEventListener("scroll", () => told.push(pane.scrollTop), true);
  await type(one("composer"), "And now?");
  await press(one("composer"), "Enter");
  expect(pane.scrollTop).toBe(1000);
  expect(told).toEqual([1000]); // at once, for the element that the view goes on in
});

test("numbers of arguments are shown as they are", async () => {
  const values = { a: 1, b: [0, null, 9007199254740992], c: 2 };
  const numbers = { "/a": "1.0", "/b/0": "-0.0", "/b/1": "NaN", "/b/2": "9007199254740993" };
  await show({
    ...waiting({ ...write, arguments: values, numbers }),
    entries: [said({ type: "tool_call", id: "c", name: "pay", arguments: values, numbers })],
  });
  const shown = [...one("approval").querySelectorAll(".sagents-form-value")].map((value) => value.textContent);
  expect(shown).toEqual(["1.0", "[-0.0,NaN,9007199254740993]", "2"]);
  expect(one("tool-card").textContent).toContain("1.0 · [-0.0,NaN,9007199254740993] · 2");
});

test("a call that somebody edited shows what was run, and what was asked for", async () => {
  const call = { type: "tool_call" as const, id: "c", name: "pay", arguments: { amount: 5, to: "Ada" } };
  const metadata = { edited_arguments: { amount: 500, to: "Ada" } };
  const result = { type: "tool_result" as const, tool_call_id: "c", name: "pay", content: "paid", metadata };
  const numbers = { "/amount": "500.0" };
  const answered = { seq: 2, run_id: "r1", ts: 0, message: { role: "tool", parts: [{ ...result, numbers }] } };
  await show(emptyState({ entries: [said(call), answered] }));
  const card = one("tool-card");
  expect(card.querySelector("summary")!.textContent).toContain("500.0 · Ada");
  expect(card.querySelector("summary")!.textContent).toContain("Edited");
  await open(card);
  expect([...card.querySelectorAll(".sagents-form-value")].map((value) => value.textContent)).toEqual(["500.0", "Ada", "5", "Ada"]);
  expect(one("before-edit").textContent).toContain("Before it was edited");
});

test("a call that somebody edited shows what runs, from the decision on", async () => {
  const call = { type: "tool_call" as const, id: "c", name: "pay", arguments: { amount: 5, to: "Ada" } };
  const decided = { c: { type: "edit", by: "user", arguments: { amount: 500, to: "Ada" } } };
  const tools = { c: { name: "pay", status: "running", display_text: null } };
  await show(emptyState({ status: "running", entries: [said(call)], decided, tools }));
  const card = one("tool-card");
  expect(card.querySelector("summary")!.textContent).toContain("500 · Ada");
  await open(card);
  expect([...card.querySelectorAll(".sagents-form-value")].map((value) => value.textContent)).toEqual(["500", "Ada", "5", "Ada"]);
});

test("numbers of an edit are sent as they are written", async () => {
  await show(waiting({ ...write, arguments: { a: 1, n: null, text: "x" }, numbers: { "/a": "1.0", "/n": "NaN" } }));
  await click("edit");
  const field = find("edit-field").find((found) => found.dataset.field === "*") as HTMLTextAreaElement;
  expect(field.value).toBe('{\n  "a": 1.0,\n  "n": NaN\n}');
  await click("edit-save");
  expect(sent("decide")[0]!.decisions).toEqual({
    w1: { type: "edit", digest: "dw", arguments: { a: 1, n: null, text: "x" }, json: field.value },
  });
});
