// Markers of an answer lead to the passages that it is taken from.
import { expect, test } from "vitest";
import { emptyState } from "../dev/scenes";
import { placeOf } from "../src/citations";
import type { Entry, Json } from "../src/protocol";
import { el, find, one, settle, show } from "./page";

const CITATIONS: Json = [
  { number: 1, location: { document: "/tides.md", line: 3, last_line: 4 }, quote: "High tide is at **six**." },
  { number: 2, location: { document: "report.pdf", page: 4 }, quote: "Low tide is at noon." },
  { number: 7 },
];
const text = "It is at six [1], and low at noon [1, 2] or later [7]. In code `a[1]`, of no source [12].";

async function showAnswer(citations: Json = CITATIONS) {
  const entry: Entry = { seq: 0, run_id: "r1", ts: 0, message: { role: "assistant", parts: [{ type: "text", text }], metadata: { citations } } };
  await show(
    emptyState({
      entries: [entry],
      files: [{ path: "/tides.md", size: 3 }],
      runs: { r1: { status: "completed", started: 1, ended: 2 } },
    }),
  );
}
const markers = () => [...el.querySelectorAll<HTMLElement>(".sagents-md button")];

test("each number of a marker leads to its passage, which opens and has the focus", async () => {
  await showAnswer();
  expect(markers().map((each) => each.textContent)).toEqual(["1", "1", "2"]);
  expect(one("entry").querySelector(".sagents-md")!.textContent).toContain("noon [1, 2] or later [7?]. In code a[1], of no source [12].");
  expect(one("sources").textContent).not.toContain("noon");
  markers()[2]!.click();
  await settle();
  const opened = [...el.querySelectorAll<HTMLDetailsElement>("[data-source][open]")];
  expect(opened.map((each) => each.dataset.source)).toEqual(["2"]);
  expect(opened[0]!.textContent).toContain("Low tide is at noon.");
  expect(document.activeElement).toBe(opened[0]!.querySelector("summary"));
});

test("a passage is shown as it stands, and a file of the conversation is opened from it", async () => {
  await showAnswer();
  markers()[0]!.click();
  await settle();
  expect(one("sources").textContent).toContain("High tide is at **six**.");
  one("sources").querySelector<HTMLElement>("details button.sagents-link:last-child")!.click();
  await settle();
  expect(one("file-viewer").dataset.path).toBe("/tides.md");
});

test("of a number that was never shown to the model it says so", async () => {
  await showAnswer();
  expect(one("sources").textContent).toContain("[7] not verified: no passage with this number was shown to the model");
});

test.each<[string, Json]>([["of a provider", [{ type: "page_location", cited_text: "x" }]], ["of somebody else", "see above"], ["of none", []]])("a key of that name %s is no source", async (_, citations) => {
  await showAnswer(citations);
  expect(find("sources")).toEqual([]);
  expect(markers()).toEqual([]);
});

test.each<[Parameters<typeof placeOf>[0], string]>([
  [{ document: "a.md", line: 3, last_line: 7 }, "a.md:3-7"],
  [{ document: "a.md", line: 3 }, "a.md:3"],
  [{ document: "r.pdf", page: 4 }, "r.pdf, page 4"],
  [{ document: "s.ipynb", cell: 2, line: 1, last_line: 1 }, "s.ipynb, cell 2, line 1"],
  [{ document: "s.ipynb", cell: 2, output: true, line: 1, last_line: 3 }, "s.ipynb, output of cell 2, lines 1-3"],
  [{ document: "lakes", row: 0 }, "lakes, row 0"],
])("a place is said in a few words", (location, words) => {
  expect(placeOf(location)).toBe(words);
});
