import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { reduce, type ViewState, type WireEvent } from "../src/protocol";

const folder = "../tests/fixtures/protocol";
const read = (name: string) => JSON.parse(readFileSync(`${folder}/${name}`, "utf8"));
const names = readdirSync(folder).filter((name) => name.endsWith(".json") && name !== "messages.json");

type Example = { name: string; before: ViewState; events: WireEvent[]; after: ViewState };

function frozen<T>(value: T): T {
  if (value !== null && typeof value === "object") Object.values(Object.freeze(value)).forEach(frozen);
  return value;
}

test.each(names)("%s", (name) => {
  const { before, events, after } = frozen(read(name)) as Example;
  expect(events.reduce(reduce, before)).toEqual(after);
});

test("there is an example for every row of the reduction table", () => {
  const table = readFileSync("PROTOCOL.md", "utf8").split("Reduction, by event type")[1]!;
  const rows = [...table.matchAll(/^\| `(\w+)` \|/gm)].map((match) => match[1]!);
  const shown = new Set(names.flatMap((name) => (read(name) as Example).events.map((event) => event.type as string)));
  expect(rows.length).toBeGreaterThan(12);
  expect(rows.filter((row) => !shown.has(row))).toEqual([]);
});

test("what an event does not change is the same object", () => {
  const { before, events } = read("todos.json") as Example;
  const after = reduce(before, events[0]!);
  expect(after.entries).toBe(before.entries);
  expect(reduce(after, { type: "turn_start", seq: 99 } as never)).toBe(after);
});
