// Links of an answer to the conversation's files: a click opens them in the same view.
import { expect, test } from "vitest";
import { emptyState } from "../dev/scenes";
import type { ViewState } from "../src/protocol";
import { el, find, model, one, said, settle, show } from "./page";

const text = "See [the readme](/notes/my%20readme.md), [nothing](/gone.md), [a site](https://example.org) and [code](/notes).";
const answered = (more: Partial<ViewState> = {}) =>
  emptyState({
    entries: [said({ type: "text", text })],
    files: [{ path: "/notes/my readme.md", size: 3 }, { path: "/notes", is_directory: true }],
    runs: { r1: { status: "completed", started: 1, ended: 2 } },
    ...more,
  });
const link = () => el.querySelector<HTMLElement>(".sagents-md button")!;

test.each(["session", "run"])("in the view %s a path of a file is a link that opens it", async (view) => {
  await show(answered(), view, "r1");
  expect([...el.querySelectorAll(".sagents-md :is(button, a[href])")].map((each) => each.textContent)).toEqual(["the readme", "a site"]);
  expect(find("file-viewer")).toEqual([]);
  link().click();
  await settle();
  expect(one("file-viewer").dataset.path).toBe("/notes/my readme.md");
  expect(one("file-viewer").closest("[hidden], details:not([open])")).toBeNull();
  expect(document.activeElement).toBe(one("file-back"));
});

test("what was closed, or left for another tab, is opened again by the same link", async () => {
  await show(answered());
  link().click();
  await settle();
  const chat = el.querySelector<HTMLElement>("[role=tab]")!;
  chat.click();
  await settle();
  expect(one("file-viewer").closest("[hidden]")).not.toBeNull();
  link().click();
  await settle();
  expect(one("file-viewer").closest("[hidden]")).toBeNull();
});

test("a file that comes later becomes a link then", async () => {
  await show(answered({ files: [] }));
  expect(link()).toBeNull();
  model.events([{ type: "file_updated", seq: 9, path: "/gone.md", entry: { path: "/gone.md", size: 1 } }]);
  await settle();
  expect(link().textContent).toBe("nothing");
});

test("where no files are shown, it is text", async () => {
  await show(answered(), "chat");
  expect(el.querySelectorAll(".sagents-md button")).toHaveLength(0);
});
