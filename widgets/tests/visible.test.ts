import { expect, test } from "vitest";
import { parseCsv } from "../src/csv";
import { joinArguments, splitArguments } from "../src/edit-form";
import { canonicalJson, hasHidden, hasInexactNumber, pieces } from "../src/visible";

const HIDDEN: [string, string][] = [
  ["\u202e", "right-to-left override"],
  ["\u2066", "left-to-right isolate"],
  ["\u200b", "zero-width space"],
  ["\u200d", "zero-width joiner"],
  ["\ufeff", "byte order mark"],
  ["\u00ad", "soft hyphen"],
  ["\u00a0", "no-break space"],
  ["\u0000", "invisible character"],
  ["\u001b", "escape"],
  ["\r", "carriage return"],
  ["\u007f", "invisible character"],
  ["\u0085", "invisible character"],
  ["\u2028", "invisible character"],
  ["\u2062", "invisible character"],
  ["\u3164", "invisible character"],
  ["\u115f", "invisible character"],
  ["\u2800", "invisible character"],
  ["\ufe0f", "invisible character"],
  ["\u{e0041}", "invisible character"],
  ["\u{e0100}", "invisible character"],
  ["\u2009", "invisible character"],
  ["\ud800", "invisible character"],
  ["\ue000", "invisible character"],
];

test.each(HIDDEN)("%j is shown", (character, name) => {
  const found = pieces(`a${character}b`);
  expect(found).toHaveLength(3);
  expect(found[1]!.text).toBe(`\\u{${character.codePointAt(0)!.toString(16).padStart(4, "0")}}`);
  expect(found[1]!.hidden).toContain(name);
  expect(hasHidden(character)).toBe(true);
  const json = canonicalJson({ a: character });
  expect(hasHidden(json)).toBe(false);
  expect(JSON.parse(json)).toEqual({ a: character });
});

test("what people see is left alone", () => {
  for (const text of ["plain", "Zeile\n\tzwei", "日本語　テキスト", "Ελληνικά", "عربي", "🐧 emoji", "\\u202e", "e\u0301"]) {
    expect(pieces(text)).toEqual([{ text }]);
  }
  expect(pieces("")).toEqual([]);
});

test("canonical JSON sorts keys, deeply", () => {
  expect(canonicalJson({ b: 1, a: [{ d: null, c: true }] }, 0)).toBe('{"a":[{"c":true,"d":null}],"b":1}');
});

test("numbers that lost digits are noticed", () => {
  expect(hasInexactNumber({ a: [1, { b: 2 ** 53 }] })).toBe(true);
  expect(hasInexactNumber({ a: [1, { b: 0.1 }], c: null })).toBe(false);
});

test("texts get fields, the rest is JSON, and order survives", () => {
  const values = { file_path: "/a", lines: [1, 2], content: "x\ny", hidden: "a\u202eb" };
  const { texts, rest } = splitArguments(values);
  expect(texts).toEqual({ file_path: "/a", content: "x\ny" });
  expect(rest).toEqual({ lines: [1, 2], hidden: "a\u202eb" });
  const joined = joinArguments(values, texts, canonicalJson(rest));
  expect(joined).toEqual(values);
  expect(Object.keys(joined)).toEqual(Object.keys(values));
});

test("edited JSON is checked", () => {
  const values = { content: "x" };
  expect(joinArguments(values, values, "{")).toMatch(/not valid JSON/);
  expect(joinArguments(values, values, "[1]")).toMatch(/must be a JSON object/);
  expect(joinArguments(values, values, '{"content": "y"}')).toMatch(/has a field of its own/);
  expect(joinArguments({ ...values, n: 1 }, values, "{}")).toEqual(values);
});

test("CSV with quotes, separators and newlines in cells", () => {
  expect(parseCsv('a,b\r\n"x, y","say ""hi""\nthere"\n\n1,\n')).toEqual([
    ["a", "b"],
    ["x, y", 'say "hi"\nthere'],
    ["1", ""],
  ]);
});
