import { Lexer } from "marked";
import { expect, test, vi } from "vitest";
import { MarkdownStream, parseMarkdown, type Block } from "../src/markdown";

const SAMPLES = [
  "# Title\n\nSome *text* and `code`.\n\n- one\n- two\n  - deep\n\n1. first\n\n   more\n2. second\n",
  "Heading\n===\n\npara\nline two\n---\n\n> quote\nlazy\n\n> other\n\nend",
  "```python\nprint('a')\n\n\nprint('b')\n```\n\nAfter.\n\n~~~\nnot ``` closed\n~~~\n",
  "| a | b |\n|--|-:|\n| 1 | 2 |\n| 3 | 4 |\n\ntext | with pipe\n",
  "    indented\n\n    more\n\ntext\n\n<div>\n\n*inside*\n\n</div>\n\n<!-- a\n\nb -->\n\nlast",
  "- [ ] todo\n- [x] done\n\n\n\n***\n\n![image](data:image/png;base64,AAAA)\n",
  "Windows\r\n\r\n- a\r\n- b\r\n\r\n```\r\ncode\r\n```\r\nend\r",
  "[early]: https://example.org\n\nA [link][early] and **bold\nover lines**.\n\nunclosed `code and **bold",
  "The mean $\\bar x_i$ costs $5 and $6.\n\n$$\na\n- b\n= c\n$$\n\nor \\(a*b*c\\), $$x$$ and\n\n\\[\n\\frac{1}{2}\n\\]\n\n$$ open\n\n- list\n",
  "1. a\n   ```js\n   x = 1;\n   ```\n2. b\n\n\n   c\n\ntext\n# no blank\ntext\n* list at once\n",
];

function pieces(text: string, random: () => number): string[] {
  const found: string[] = [];
  for (let at = 0; at < text.length; ) {
    const length = 1 + Math.floor(random() * 7);
    found.push(text.slice(at, at + length));
    at += length;
  }
  return found;
}

/** Where a line is cut, streaming may know less than a second look at the whole: "-" is a rule, or an item. */
function same(blocks: Block[], text: string): void {
  if (text.endsWith("\n")) expect(blocks).toEqual(parseMarkdown(text));
}

/** Repeatable chance (mulberry32). */
function chance(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

test.each(SAMPLES.map((text, i) => [i, text] as const))("streamed equals whole: %i", (i, text) => {
  for (let round = 0; round < 20; round++) {
    const stream = new MarkdownStream();
    let grown = "";
    for (const piece of pieces(text, chance(100 * i + round))) {
      grown += piece;
      same(stream.blocks(grown), grown);
    }
    same(stream.blocks(`${text}\n`), `${text}\n`);
    expect(stream.whole(text)).toEqual(parseMarkdown(text));
  }
});

test("random mixtures, streamed, equal the whole", () => {
  const random = chance(7);
  for (let round = 0; round < 150; round++) {
    const lines = SAMPLES.flatMap((sample) => sample.split("\n")).filter((line) => !line.startsWith("[early]"));
    const text = Array.from({ length: 25 }, () => lines[Math.floor(random() * lines.length)]).join("\n");
    const stream = new MarkdownStream();
    let grown = "";
    for (const piece of pieces(text, random)) {
      grown += piece;
      same(stream.blocks(grown), grown);
    }
    expect(stream.whole(text)).toEqual(parseMarkdown(text));
  }
});

test("a text that has grown here is not read again at its end, unless a link is defined in it", () => {
  const lex = vi.spyOn(Lexer.prototype, "lex");
  const read = (text: string) => {
    const stream = new MarkdownStream();
    for (let end = 0; end < text.length; end += 90) stream.blocks(text.slice(0, end));
    lex.mockClear();
    stream.whole(text);
    return Math.max(...lex.mock.calls.map(([source]) => source.length));
  };
  const text = Array.from({ length: 200 }, (_, i) => `Paragraph ${i}, as in [the book].\n\n`).join("");
  expect(read(text)).toBeLessThan(200);
  expect(read(`${text}> [the book]: https://example.org\n`)).toBeGreaterThan(text.length);
  expect(new MarkdownStream().whole(text)).toEqual(parseMarkdown(text));
  lex.mockRestore();
});

test("finished blocks stay the same objects", () => {
  const stream = new MarkdownStream();
  const before = stream.blocks("# One\n\nTwo\n\nThree\n");
  const after = stream.blocks("# One\n\nTwo\n\nThree\n\nFour");
  expect(after[0]).toBe(before[0]);
  expect(after[1]).toBe(before[1]);
});

test("a text that is another one begins anew", () => {
  const stream = new MarkdownStream();
  stream.blocks("# One\n\nTwo");
  expect(stream.blocks("Other")).toEqual(parseMarkdown("Other"));
});

test("code is closed by its fence only", () => {
  const code = (text: string) => parseMarkdown(text)[0];
  expect(code("```py\na")).toEqual({ kind: "code", language: "py", code: "a", closed: false });
  expect(code("```py\na\n```")).toMatchObject({ code: "a", closed: true });
  expect(code("````\n```\n```")).toMatchObject({ closed: false });
  expect(code("```")).toMatchObject({ code: "", closed: false });
});

test("only the tail is parsed again", () => {
  const lex = vi.spyOn(Lexer.prototype, "lex");
  const stream = new MarkdownStream();
  let text = "";
  for (let i = 0; i < 500; i++) stream.blocks((text += `Paragraph ${i} with **bold** text.\n\n`));
  expect(Math.max(...lex.mock.calls.map(([source]) => source.length))).toBeLessThan(200);
  lex.mockRestore();
});
