import { expect, test } from "vitest";
import { parseCsv } from "../src/csv";
import { joinArguments, splitArguments, type Edited } from "../src/edit-form";
import { exactJson, hasHidden, pieces, spelledOut } from "../src/visible";

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
  expect(found[1]!.really).toContain(name);
  expect(hasHidden(character)).toBe(true);
  const json = exactJson({ a: character });
  expect(hasHidden(json)).toBe(false);
  expect(JSON.parse(json)).toEqual({ a: character });
});

test("what people see is left alone", () => {
  for (const text of ["plain", "Zeile\n\tzwei", "日本語　テキスト", "Ελληνικά", "عربي", "🐧 emoji", "\\u202e", "e\u0301"]) {
    expect(pieces(text)).toEqual([{ text }]);
  }
  expect(pieces("")).toEqual([]);
});

test("names stay in their order", () => {
  expect(exactJson({ b: 1, a: [{ d: null, c: true }] }, 0)).toBe('{"b":1,"a":[{"d":null,"c":true}]}');
});

test("a half character, which the kernel tells as one of plane 16, is seen", () => {
  expect(pieces("/a\u{10dcff}.txt")[1]).toEqual({ text: "\\u{10dcff}", really: "U+10DCFF invisible character" });
  expect(exactJson("\u{10dcff}", 0)).toBe('"\\udbf7\\udcff"');
});

test("numbers are written as the kernel says, in their places", () => {
  const value = { b: [1, { "c/d~e": null }], a: -0, d: 2, e: { "": 9007199254740992 } };
  const numbers = { "/b/0": "1.0", "/b/1/c~1d~0e": "NaN", "/a": "-0.0", "/e/": "9007199254740993" };
  expect(exactJson(value, 0, numbers)).toBe('{"b":[1.0,{"c/d~e":NaN}],"a":-0.0,"d":2,"e":{"":9007199254740993}}');
  expect(exactJson(1, 0, { "/n": "1.0" }, "/n")).toBe("1.0");
});

test("without that, it is JSON", () => {
  for (const value of [{ a: [1, { b: "x\n" }], c: {}, d: [] }, [], [[]], "text", 0.5, null, true, { "": [null, [false]] }]) {
    for (const indent of [0, 2]) expect(exactJson(value, indent)).toBe(JSON.stringify(value, null, indent));
  }
});

test.each([
  ["p\u0430ypal", ["\u0430"]],
  ["/etc/p\u0430sswd", ["\u0430"]],
  ["\u043f\u0430\u043f\u043a\u0061", ["a"]],
  ["p\u03bfrt", ["\u03bf"]],
  ["\u0570ost", ["\u0570"]],
  ["\uff50ay", ["\uff50"]],
  ["\u{1d429}ay", ["\u{1d429}"]],
  ["\u2170d", ["\u2170"]],
  ["sudo r\u043c, r\u043c", ["\u043c", "\u043c"]],
])("letters of %s that look like others are marked", (text, odd) => {
  const found = pieces(text);
  expect(found.filter((piece) => piece.really).map((piece) => piece.text)).toEqual(odd);
  expect(found.map((piece) => piece.text).join("")).toBe(text);
});

test("a look-alike says what it is", () => {
  expect(pieces("p\u0430y")).toEqual([
    { text: "p" },
    { text: "\u0430", really: "U+0430 of another script than the word around it" },
    { text: "y" },
  ]);
});

test("words of one script beside each other are left alone", () => {
  for (const text of ["\u043e\u0442\u043a\u0440\u043e\u0439 report.md", "\u0444\u0430\u0439\u043b.txt", "Größe", "x² + µ", "T\u30b7\u30e3\u30c4", "\u03b1 = 1", "na\u0308ive"]) {
    expect(pieces(text)).toEqual([{ text }]);
  }
});

test("in a place of one line newlines and tabs are escapes", () => {
  expect(spelledOut("a\nb\tc\u202ed")).toBe("a\\u{000a}b\\u{0009}c\\u{202e}d");
  expect(pieces("a\nb", true)[1]!.really).toBe("U+000A newline");
  expect(pieces("a\nb\tc")).toEqual([{ text: "a\nb\tc" }]);
});

test("texts get fields, the rest is JSON, and order survives", () => {
  const values = { file_path: "/a", lines: [1, 2], content: "x\ny", hidden: "a\u202eb" };
  const { texts, rest } = splitArguments(values);
  expect(texts).toEqual({ file_path: "/a", content: "x\ny" });
  expect(rest).toEqual({ lines: [1, 2], hidden: "a\u202eb" });
  const joined = joinArguments(values, texts, exactJson(rest, 0)) as Edited;
  expect(joined).toEqual({ arguments: values, json: '{"lines":[1,2],"hidden":"a\\u202eb"}' });
  expect(Object.keys(joined.arguments)).toEqual(Object.keys(values));
});

test("edited JSON is checked", () => {
  const values = { content: "x" };
  expect(joinArguments(values, values, "{")).toMatch(/not valid JSON/);
  expect(joinArguments(values, values, "[1]")).toMatch(/must be a JSON object/);
  expect(joinArguments(values, values, '{"content": "y"}')).toMatch(/has a field of its own/);
  expect(joinArguments({ ...values, n: 1 }, values, "{}")).toEqual({ arguments: values });
});

test("numbers of edited JSON are sent as they are written", () => {
  const json = '{"a": [1.0, -0.0, NaN, -Infinity, 9007199254740993], "b": "1 NaN \\" 2"}';
  expect(joinArguments({}, {}, json)).toEqual({ arguments: { a: [1, -0, null, null, 9007199254740992], b: '1 NaN " 2' }, json });
  expect(joinArguments({}, {}, '{"b": "1 NaN"}')).toEqual({ arguments: { b: "1 NaN" } });
});

test("CSV with quotes, separators and newlines in cells", () => {
  expect(parseCsv('a,b\r\n"x, y","say ""hi""\nthere"\n\n1,\n')).toEqual([
    ["a", "b"],
    ["x, y", 'say "hi"\nthere'],
    ["1", ""],
  ]);
});

test("of a CSV text that was cut, the last row counts if it is whole", () => {
  expect(parseCsv("a,b\n1,2\n3,4", ",", true)).toEqual([["a", "b"], ["1", "2"]]);
  expect(parseCsv("a,b\n1,2\n", ",", true)).toEqual([["a", "b"], ["1", "2"]]);
  expect(parseCsv('a,b\n1,"x\ny\n', ",", true)).toEqual([["a", "b"]]);
});
