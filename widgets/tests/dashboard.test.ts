import { expect, test } from "vitest";
import { problemsIn } from "../src/dashboard/blueprints";
import type { Thread } from "../src/dashboard/hub";
import { addressOf, placeOf, type Place } from "../src/dashboard/place";
import { statusOf, treeOf } from "../src/dashboard/threads";

const thread = (id: string, parent = "", more: Partial<Thread> = {}): Thread => ({
  id,
  agentType: "guide",
  createdAt: "2026-01-01T00:00:00Z",
  ...(parent && { parent: { threadId: parent } }),
  ...more,
});

test("every place has an address that leads back to it", () => {
  const places: Place[] = [
    { page: "agencies" },
    { page: "new", agency: "a1" },
    { page: "thread", agency: "a1", thread: "t/1 ü" },
    { page: "blueprint", agency: "a1", name: "" },
    { page: "blueprint", agency: "a1", name: "poet" },
  ];
  for (const place of places) expect(placeOf(addressOf(place))).toEqual(place);
});

test("an address that leads nowhere leads to the next place above", () => {
  expect(placeOf("")).toEqual({ page: "agencies" });
  expect(placeOf("#code=abc")).toEqual({ page: "agencies" });
  expect(placeOf("#/agency/a1/thread/")).toEqual({ page: "new", agency: "a1" });
  expect(placeOf("#/agency/a1/thread/%E0%A4%A")).toEqual({ page: "thread", agency: "a1", thread: "%E0%A4%A" });
});

test("threads stand below who began them, in the order they come in, and on top where that one is gone", () => {
  const tree = treeOf([thread("c2", "p"), thread("lone", "gone"), thread("g", "c1"), thread("p"), thread("c1", "p")]);
  expect(tree.map((node) => node.thread.id)).toEqual(["lone", "p"]);
  expect(tree[1]!.children.map((node) => node.thread.id)).toEqual(["c2", "c1"]);
  expect(tree[1]!.children[1]!.children.map((node) => node.thread.id)).toEqual(["g"]);
});

test("a thread that waits says for whom", () => {
  expect(statusOf(thread("a"))).toEqual(["idle", "New"]);
  expect(statusOf(thread("a", "", { status: "paused", reason: "hitl" }))[1]).toBe("Needs approval");
  expect(statusOf(thread("a", "", { status: "paused", reason: "subagent" }))[1]).toBe("Waits for others");
  expect(statusOf(thread("a", "", { status: "paused", reason: "error" }))[1]).toBe("Paused");
});

test("what is wrong with a blueprint is told of its field", () => {
  const good = { name: "poet", description: "", prompt: "Write.", tags: "", model: "", config: "{}" };
  expect(problemsIn(good)).toEqual({});
  expect(Object.keys(problemsIn({ ...good, name: "two words", prompt: " ", config: "[]" }))).toEqual(["name", "prompt", "config"]);
  expect(problemsIn({ ...good, config: "{" }).config).toContain("not valid JSON");
});
