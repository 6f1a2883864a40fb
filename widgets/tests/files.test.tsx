// The agent's files: the tree, what opens of it, and what a person may do with a file.
import { expect, test } from "vitest";
import { emptyState } from "../dev/scenes";
import { find, model, one, press, settle, show } from "./page";

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
