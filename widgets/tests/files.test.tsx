// The agent's files: the tree, what opens of it, and what a person may do with a file.
import { expect, test, vi } from "vitest";
import { emptyState } from "../dev/scenes";
import type { ChangedFile, FileContent } from "../src/protocol";
import { click, el, find, leave, model, one, press, sent, settle, show } from "./page";

const file = (path: string, size = 1) => ({ path, size });
const directory = (path: string) => ({ path, is_directory: true });
const rows = () => [...document.querySelectorAll<HTMLElement>('[role="treeitem"]')];
const names = () => rows().map((row) => row.querySelector(".sagents-file-name")!.textContent);
const at = () => document.activeElement!.getAttribute("data-path");
const key = (name: string) => press(document.activeElement!, name);

const FILES = [
  file("/a10.md", 10),
  file("/a9.md", 9),
  directory("/b"),
  directory("/b/empty"),
  file("/b/z/deep.md", 2000),
  file("/b.md"),
  file("/b/c.md", 500),
];
const showFiles = (files = FILES as { path: string }[]) => show(emptyState({ files }), "files");

test("directories come first, names are sorted as people read them, and each depth has its own", async () => {
  await showFiles();
  expect(names()).toEqual(["b", "empty", "z", "deep.md", "c.md", "a9.md", "a10.md", "b.md"]);
  expect(rows().map((row) => row.ariaLevel ?? row.getAttribute("aria-level"))).toEqual(["1", "2", "2", "3", "2", "1", "1", "1"]);
  expect(rows()[4]!.getAttribute("aria-posinset")).toBe("3");
  expect(rows()[4]!.getAttribute("aria-setsize")).toBe("3");
});

test("a narrow panel has a tab for what there is, and counts files, no directories", async () => {
  const todos = [{ id: 1, content: "Look", status: "pending" as const }];
  const tabs = () => [...el.querySelectorAll<HTMLElement>('[role="tab"]')].map((tab) => tab.textContent);
  await show(emptyState({ files: [file("/a.md"), directory("/b"), file("/.sagents/x.json")] }));
  expect(tabs()).toEqual(["Chat", "Files 1"]);
  leave();
  await show(emptyState({ todos }));
  expect(tabs()).toEqual(["Chat", "Todos 1"]);
  const list = el.querySelectorAll<HTMLElement>('[role="tab"]')[1]!;
  list.click();
  await settle();
  expect(list.ariaSelected ?? list.getAttribute("aria-selected")).toBe("true");
  expect(el.querySelectorAll('[role="tabpanel"]:not([hidden])')).toHaveLength(1);
});

test("a directory says the size of all in it, or that it is empty", async () => {
  await showFiles();
  expect(rows().map((row) => row.querySelector(".sagents-faint")!.textContent)).toEqual([
    "2.5 kB", "empty", "2.0 kB", "2.0 kB", "500 B", "9 B", "10 B", "1 B",
  ]);
});

test("a directory folds with all below it, and what was folded in it stays so", async () => {
  await showFiles();
  find("directory").find((row) => row.dataset.path === "/b/z")!.click();
  await settle();
  expect(names()).toEqual(["b", "empty", "z", "c.md", "a9.md", "a10.md", "b.md"]);
  one("directory").click();
  await settle();
  expect(names()).toEqual(["b", "a9.md", "a10.md", "b.md"]);
  expect(one("directory").getAttribute("aria-expanded")).toBe("false");
  one("directory").click();
  await settle();
  expect(names()).toEqual(["b", "empty", "z", "c.md", "a9.md", "a10.md", "b.md"]);
});

test("the arrow keys walk the tree, fold it and unfold it", async () => {
  await showFiles();
  expect(rows().filter((row) => row.tabIndex === 0)).toHaveLength(1);
  rows()[0]!.focus();
  const walk = async (...keys: string[]) => {
    for (const name of keys) await key(name);
    return at();
  };
  expect(await walk("ArrowDown", "ArrowDown")).toBe("/b/z");
  expect(await walk("ArrowRight")).toBe("/b/z/deep.md");
  expect(await walk("ArrowRight")).toBe("/b/z/deep.md");
  expect(await walk("ArrowLeft")).toBe("/b/z");
  expect(await walk("ArrowLeft")).toBe("/b/z");
  expect(names()).not.toContain("deep.md");
  expect(await walk("ArrowRight")).toBe("/b/z");
  expect(names()).toContain("deep.md");
  expect(await walk("End")).toBe("/b.md");
  expect(await walk("ArrowDown")).toBe("/b.md");
  expect(await walk("Home", "ArrowUp")).toBe("/b");
  expect(await walk("a")).toBe("/a9.md");
  expect(await walk("a")).toBe("/a10.md");
});

test("Enter opens a file, and Back returns to its row", async () => {
  await showFiles();
  model.files["/a9.md"] = "# Nine";
  rows()[5]!.focus();
  await key("ArrowDown");
  await key("ArrowUp");
  await key("Enter");
  expect(one("file-viewer").dataset.path).toBe("/a9.md");
  one("file-back").click();
  await settle();
  expect(at()).toBe("/a9.md");
});

test("a tree of very many files begins folded", async () => {
  await showFiles([...Array(300).keys()].map((n) => file(`/many/${n}.md`)));
  expect(names()).toEqual(["many"]);
});

test("what sagents keeps for itself is not shown, and that is said", async () => {
  await showFiles([file("/a.md"), file("/.sagents/files/x"), file("/b/.sagents/y")]);
  expect(names()).toEqual(["a.md"]);
  expect(one("own-files").textContent).toContain(".sagents");
});

const openFile = async (path: string, content: string | null, about: Partial<FileContent> = {}) => {
  await showFiles([file(path)]);
  model.files[path] = content;
  model.about[path] = about;
  one("file").click();
  await settle();
  await settle();
};
const body = () => one("file-viewer").querySelector(".sagents-viewer-body")!;

test("an image is shown as one, and is named", async () => {
  await openFile("/plots/mass.png", null, { media_type: "image/png", data: "iVBORw0KGgo=" });
  const image = one("file-image") as HTMLImageElement;
  expect(image.src).toBe("data:image/png;base64,iVBORw0KGgo=");
  expect(image.alt).toBe("mass.png");
});

test.each([
  ["/all.zip", { media_type: "application/zip", size: 48_213 }, "A binary file of 48 kB (application/zip)."],
  ["/large.png", { media_type: "image/png", size: 5_100_000 }, "An image of 5.1 MB (image/png), too large to be shown here: download it to see it."],
  ["/page.svg", { media_type: "image/svg+xml", size: 10, data: "PHN2Zz4=" }, "A binary file of 10 B (image/svg+xml)."],
])("a binary file says how large it is and of which type: %s", async (path, about, said) => {
  await openFile(path, null, about);
  expect(body().textContent).toBe(said);
  expect(body().querySelector("img")).toBeNull();
});

test.each([
  ["/a.json", '{"a": [1.0, null]}', ".hljs-number"],
  ["/a.py", "def f(): pass", ".hljs-keyword"],
])("code is coloured: %s", async (path, text, token) => {
  await openFile(path, text);
  expect(body().querySelector(token)).not.toBeNull();
  expect(body().textContent).toBe(text);
});

const NOTEBOOK = {
  metadata: { kernelspec: { language: "python" } },
  cells: [
    { cell_type: "markdown", source: ["# Penguins\n", "and **more**"] },
    {
      cell_type: "code",
      execution_count: 3,
      source: "import os\nprint(1)",
      outputs: [
        { output_type: "stream", name: "stdout", text: ["one\n", "\u001b[31mtwo\u001b[0m"] },
        { output_type: "display_data", data: { "image/png": "iVBO\nRw0K", "text/plain": "<Figure>" } },
        { output_type: "execute_result", data: { "text/html": "<b onclick='x'>x</b>", "text/plain": "'x'" } },
        { output_type: "display_data", data: { "text/html": "<script>alert(1)</script>" } },
        { output_type: "error", ename: "KeyError", evalue: "'a'", traceback: [] },
      ],
    },
    { cell_type: "code", execution_count: null, source: [], outputs: "no list" },
    7,
  ],
};

test("a notebook is its cells, with their texts and images, and none of its HTML", async () => {
  await openFile("/a.ipynb", JSON.stringify(NOTEBOOK));
  expect(find("notebook-cell").map((cell) => cell.dataset.kind)).toEqual(["markdown", "code", "code"]);
  expect(one("notebook-cell").querySelector("h1")!.textContent).toBe("Penguins");
  const [, code] = find("notebook-cell");
  expect(code!.querySelector(".hljs-keyword")!.textContent).toBe("import");
  expect(code!.querySelector(".sagents-cell-number")!.textContent).toBe("[3]");
  expect([...code!.querySelectorAll(".sagents-cell-output")].map((output) => output.textContent)).toEqual([
    "one\ntwo", "", "'x'", "[text/html]", "KeyError: 'a'",
  ]);
  expect(code!.querySelector("img")!.src).toBe("data:image/png;base64,iVBORw0K");
  one("file-raw").click();
  await settle();
  expect(body().textContent).toBe(JSON.stringify(NOTEBOOK));
});

test("a notebook that is longer than what is shown of a text is asked for whole", async () => {
  const long = { ...NOTEBOOK, cells: [{ cell_type: "code", source: "# ü" + "x".repeat(250_000), outputs: [] }] };
  await openFile("/a.ipynb", JSON.stringify(long), { size: 250_200 });
  expect(sent("read_file").map((message) => message.whole)).toEqual([undefined, true]);
  expect(find("notebook-cell")).toHaveLength(1);
  expect(body().textContent).toContain("# üx");
});

test.each(["{", "[]", '{"cells": 3}', "null"])("what is no notebook is shown as it is: %s", async (text) => {
  await openFile("/a.ipynb", text);
  expect(find("notebook")).toHaveLength(0);
  expect(body().textContent).toBe(text);
});

test("a download is all of the file under its own name, whatever is in it", async () => {
  let saved: { name: string; type: string; text: Promise<string> } | undefined;
  let blob: Blob;
  vi.stubGlobal("URL", Object.assign(URL, { createObjectURL: (made: Blob) => ((blob = made), "blob:x"), revokeObjectURL: () => {} }));
  const clicked = vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(function (this: HTMLAnchorElement) {
    saved = { name: this.download, type: blob.type, text: textOf(blob) };
  });
  await openFile("/notes/ü.md", "# Für alle");
  one("file-download").click();
  await settle();
  clicked.mockRestore();
  vi.unstubAllGlobals();
  expect(sent("read_file").at(-1)).toMatchObject({ path: "/notes/ü.md", whole: true });
  expect(saved).toMatchObject({ name: "ü.md", type: "application/octet-stream" });
  expect(await saved!.text).toBe("# Für alle");
});

const textOf = (blob: Blob) =>
  new Promise<string>((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.readAsText(blob);
  });

test("a download that the kernel refuses says why", async () => {
  await openFile("/a.md", "# A");
  model.answer = ({ id }) => model.receive({ type: "error", id: id!, kind: "ValueError", message: "Too large." });
  one("file-download").click();
  await settle();
  expect(one("file-viewer").querySelector('[role="alert"]')!.textContent).toBe("Too large.");
});

test("the path is copied, and where the file lies on the disk, if it does", async () => {
  const copied: string[] = [];
  vi.stubGlobal("navigator", { clipboard: { writeText: async (text: string) => void copied.push(text) } });
  const button = (label: string) => el.querySelector<HTMLElement>(`[aria-label="${label}"]`);
  await openFile("/a.md", "# A", { location: "/home/ada/study/a.md" });
  expect(one("file-location").textContent).toContain("/home/ada/study/a.md");
  button("Copy path")!.click();
  button("Copy path on disk")!.click();
  await settle();
  expect(copied).toEqual(["/a.md", "/home/ada/study/a.md"]);
  leave();
  await openFile("/a.md", "# A");
  expect(find("file-location")).toHaveLength(0);
  expect(button("Copy path on disk")).toBeNull();
  vi.unstubAllGlobals();
});

const CHANGED = { path: "/a.md", kind: "changed" as const, before: "one\ntwo\n", after: "one\n2\n", kept: true, since: false };
const GONE = { path: "/b/gone.md", kind: "deleted" as const, before: "bye\n", after: null, kept: true, since: false };
const NEW = { path: "/new.md", kind: "new" as const, before: null, after: "x\n", kept: true, since: false };

/** Files of which the last run has changed some; one of them is opened. */
async function changedFiles(changes: ChangedFile[], path = "", status = "idle"): Promise<void> {
  const paths = changes.filter(({ kind }) => kind !== "deleted").map(({ path }) => path);
  await show(emptyState({ status, files: [file("/other.md"), ...paths.map((each) => file(each))] }), "files", "", {
    answer: (message) => {
      model.changes = changes;
      model.reply(message);
    },
  });
  for (const each of paths) model.files[each] = "text";
  await settle();
  if (path) find("file").find((row) => row.dataset.path === path)!.click();
  await settle();
  await settle();
}
const lines = (role: string) => [...body().querySelectorAll(`[role="${role}"] .sagents-diff-text`)].map((line) => line.textContent);

test("the tree says what the last run did to files, and what it deleted stands where it was", async () => {
  await changedFiles([CHANGED, GONE, NEW]);
  expect(rows().map((row) => [row.dataset.path, row.querySelector(".sagents-file-change")?.textContent])).toEqual([
    ["/b", undefined], ["/b/gone.md", "deleted"], ["/a.md", "changed"], ["/new.md", "new"], ["/other.md", undefined],
  ]);
});

test("the changes of a file are its lines that went and came", async () => {
  await changedFiles([CHANGED], "/a.md");
  expect(find("file-changes")).toHaveLength(0);
  one("file-compare").click();
  await settle();
  expect(one("file-compare").getAttribute("aria-pressed")).toBe("true");
  expect([lines("deletion"), lines("insertion")]).toEqual([["two"], ["2"]]);
});

test("what goes when a change is undone stands at the end, so that nothing moves under the mouse", async () => {
  await changedFiles([CHANGED], "/a.md");
  const bar = () => [...el.querySelectorAll(".sagents-viewer-tools button")].map((button) => button.textContent);
  const before = bar();
  expect(before.slice(-3)).toEqual(["Raw", "Changes", "Undo…"]);
  one("file-compare").click();
  await settle();
  expect(bar()).toEqual(before);
  expect((one("file-raw") as HTMLButtonElement).disabled).toBe(true);
});

test("a deleted file opens as what it was, is not read, and can be brought back", async () => {
  await changedFiles([GONE], "/b/gone.md");
  expect(lines("deletion")).toEqual(["bye"]);
  expect(sent("read_file")).toEqual([]);
  expect(one("file-undo").textContent).toBe("Undo…");
  expect(find("file-download")).toHaveLength(0);
});

const told = () => [...el.querySelectorAll(".sagents-undo li")].map((row) => row.textContent);

test("Undo asks first, shows what it takes back, and does nothing unless that is meant", async () => {
  await changedFiles([CHANGED], "/a.md");
  await click("file-undo");
  expect(told()).toEqual(["/a.mdgoes back+1 −1"]);
  // What goes is what the run has put there, and what it took away comes.
  expect([lines("deletion"), lines("insertion")]).toEqual([["2"], ["two"]]);
  expect(document.activeElement).toBe(one("undo-keep"));
  await click("undo-keep");
  await click("file-compare");
  expect([lines("deletion"), lines("insertion")]).toEqual([["two"], ["2"]]);
  expect(find("undo-yes")).toHaveLength(0);
  expect(document.activeElement).toBe(one("file-undo"));
  await click("file-undo");
  await press(one("undo-keep"), "Escape");
  expect(find("undo-yes")).toHaveLength(0);
  expect(document.activeElement).toBe(one("file-undo"));
  expect(sent("undo_change")).toEqual([]);
});

test("Escape in that question stops no run", async () => {
  await changedFiles([CHANGED], "/a.md");
  await click("file-undo");
  await press(one("undo-keep"), "Escape");
  await click("file-undo");
  await press(one("undo-keep"), "Escape");
  expect(sent("cancel")).toEqual([]);
});

test("an Undo that is meant is asked of the kernel, and of a new file returns to the tree", async () => {
  await changedFiles([NEW], "/new.md");
  await click("file-undo");
  expect(told()).toEqual(["/new.mdis deleted+0 −1"]);
  await click("undo-yes");
  expect(sent("undo_change")).toMatchObject([{ path: "/new.md" }]);
  expect(find("file-viewer")).toHaveLength(0);
});

test("all that the last run did is undone from the tree, but for what has changed since or is not known", async () => {
  const since = { ...CHANGED, path: "/since.md", since: true };
  const unknown = { ...CHANGED, path: "/z.bin", before: null, kept: false };
  await changedFiles([CHANGED, GONE, NEW, since, unknown]);
  expect(el.textContent).toContain("The last run changed 5 files.");
  await click("file-undo");
  expect(told().sort()).toEqual([
    "/a.mdgoes back+1 −1",
    "/b/gone.mdcomes back+1 −0",
    "/new.mdis deleted+0 −1",
    "/since.mdstays: changed since",
    "/z.binstays: not known before",
  ]);
  expect(one("undo-yes").textContent).toBe("Undo 3 files");
  await click("undo-yes");
  expect(sent("undo_change").map(({ path }) => path).sort()).toEqual(["/a.md", "/b/gone.md", "/new.md"]);
  expect(find("undo-yes")).toHaveLength(0);
});

test("where one of several cannot be undone, that is said, and what is left is asked for again", async () => {
  await changedFiles([CHANGED, NEW]);
  await click("file-undo");
  model.answer = (message) =>
    message.path === "/new.md" ? model.receive({ type: "error", id: message.id!, kind: "ValueError", message: "It has changed." }) : model.reply(message);
  await click("undo-yes");
  expect(el.querySelector(".sagents-error-text")!.textContent).toBe("It has changed.");
  expect(one("undo-yes").textContent).toBe("Undo");
  await click("undo-yes");
  expect(sent("undo_change").map(({ path }) => path)).toEqual(["/a.md", "/new.md", "/new.md"]);
});

test("where nothing can be undone, it is said why, and there is nothing to agree to", async () => {
  await changedFiles([{ ...CHANGED, since: true }]);
  await click("file-undo");
  expect(told()).toEqual(["/a.mdstays: changed since"]);
  expect((one("undo-yes") as HTMLButtonElement).disabled).toBe(true);
});

test("an Undo says that it is done, where its button was, until the file is changed again", async () => {
  await changedFiles([CHANGED], "/a.md");
  const tools = () => el.querySelector(".sagents-viewer-tools")!.textContent;
  const touched = async (seq: number, changes: ChangedFile[]) => {
    model.changes = changes;
    model.answer = (message) => model.reply(message);
    model.receive({ type: "snapshot", seq, state: emptyState({ files: [{ ...file("/a.md"), size: 100 + seq }] }) });
    await settle();
    await settle();
  };
  await click("file-undo");
  await click("undo-yes");
  await touched(9, []);
  expect(find("file-undo")).toHaveLength(0);
  expect(tools()).toContain("Undone");
  await touched(10, [CHANGED]);
  expect(one("file-undo").textContent).toBe("Undo…");
  expect(find("undo-yes")).toHaveLength(0);
  await touched(11, []);
  expect(tools()).not.toContain("Undone");
});

test("an Undo that is refused says why, and the file stays open", async () => {
  await changedFiles([CHANGED], "/a.md");
  await click("file-undo");
  model.answer = ({ id }) => model.receive({ type: "error", id: id!, kind: "ValueError", message: "It has changed." });
  await click("undo-yes");
  expect(one("file-viewer").querySelector('[role="alert"]')!.textContent).toBe("It has changed.");
});

test.each([
  [{ ...CHANGED, since: true }, "It has changed since"],
  [{ ...CHANGED, kept: false, before: null }, "only texts of up to 200 kB are kept"],
])("what cannot be undone offers no Undo, and says why", async (change, said) => {
  await changedFiles([change], "/a.md");
  expect(find("file-undo")).toHaveLength(0);
  one("file-compare").click();
  await settle();
  expect(one("file-changes").textContent).toContain(said);
});

test("nothing is undone while a run goes on", async () => {
  await changedFiles([CHANGED], "/a.md", "running");
  expect((one("file-undo") as HTMLButtonElement).disabled).toBe(true);
});

test("what was changed is asked for again when files change, and a file without changes offers none", async () => {
  await changedFiles([], "/other.md");
  expect(find("file-compare")).toHaveLength(0);
  const before = sent("read_changes").length;
  model.events([{ type: "file_updated", seq: 9, path: "/other.md", entry: { path: "/other.md", size: 2 } }]);
  await settle();
  expect(sent("read_changes").length).toBe(before + 1);
});

test.each(["session", "run"])("the last file that a run deletes can be brought back there, in the view of a %s", async (view) => {
  await show(emptyState({ files: [file("/b/gone.md")] }), view, "r1", {
    answer: (message) => {
      model.changes = [GONE];
      model.reply(message);
    },
  });
  model.receive({ type: "events", after: 0, seq: 1, events: [{ type: "file_deleted", seq: 1, path: "/b/gone.md" }] });
  await settle();
  await settle();
  expect(rows().map((row) => row.dataset.path)).toContain("/b/gone.md");
});
