import { Marked, type Token } from "marked";
import { expect, test } from "vitest";
import { BoundedLexer } from "../src/lexer";
import { MarkdownStream, parseMarkdown } from "../src/markdown";
import { sanitize } from "../src/sanitize";
import { shapes } from "./shapes";

/** `MARKDOWN_SIZE=200000 npx vitest run tests/lexer.test.ts` is the long run, which prints the times. */
const SIZE = Number(process.env.MARKDOWN_SIZE ?? 4_000);
const PATIENCE = 1_000_000;

const children = (token: any): Token[] => [
  ...(token.tokens ?? []),
  ...(token.items ?? []),
  ...[...(token.header ?? []), ...(token.rows ?? []).flat()].flatMap((cell: any) => cell.tokens),
];

/** How many tokens are in each other, at most. */
function depthOf(tokens: Token[]): number {
  let depth = 0;
  for (let level = tokens; level.length > 0; level = level.flatMap(children)) depth++;
  return depth;
}

test(`${shapes.length} shapes of pathological Markdown, of ${SIZE} characters each, are parsed whole and nest within bounds`, () => {
  expect(shapes.length).toBeGreaterThanOrEqual(200);
  let longest = { time: 0, name: "" };
  for (const { name, make } of shapes) {
    const text = make(SIZE);
    const began = process.cpuUsage();
    const tokens = new BoundedLexer().lex(text);
    const time = process.cpuUsage(began).user / 1000;
    if (time > longest.time) longest = { time, name };
    expect(depthOf(tokens), name).toBeLessThan(80);
    expect(tokens.map((token) => token.raw).join("").trimEnd().length, name).toBeGreaterThanOrEqual(text.trimEnd().length * 0.9);
  }
  if (process.env.MARKDOWN_SIZE) console.log(`${shapes.length} shapes of ${SIZE}; the longest took ${longest.time.toFixed(0)} ms of the processor: ${longest.name}`);
}, PATIENCE);

test("pathological Markdown gets into the page", () => {
  for (const { name, make } of shapes) {
    for (const block of parseMarkdown(make(600))) {
      if (block.kind === "html") expect(() => sanitize(block.html), name).not.toThrow();
    }
  }
}, PATIENCE);

test("pathological Markdown that streams in is parsed whole", () => {
  for (const { make } of shapes.filter((_, index) => index % 5 === 0)) {
    const text = make(400);
    const stream = new MarkdownStream();
    for (let length = 40; length < text.length; length += 40) stream.blocks(text.slice(0, length));
    expect(stream.blocks(text).length).toBeGreaterThanOrEqual(0);
  }
}, PATIENCE);

test.each([
  ["quotes", ">".repeat(5_000) + " x"],
  ["items", "- ".repeat(3_000) + "x"],
  ["items over lines", Array.from({ length: 400 }, (_, i) => `${"  ".repeat(i)}- a\n`).join("")],
  ["emphasis", "*a ".repeat(3_000) + "a*".repeat(3_000)],
  ["links", "[".repeat(3_000) + "x" + "](b)".repeat(3_000)],
])("%s in each other keep what they say", (_, text) => {
  const html = parseMarkdown(text).map((block) => (block.kind === "html" ? block.html : block.code)).join("");
  const said = sanitize(html).textContent!;
  expect(said.match(/[ax]/g)?.length).toBe(text.match(/[ax]/g)!.length);
});

test("a run with more emphasis than can be looked at is text, and the rest of the message is not", () => {
  const blocks = parseMarkdown(`A *word*.\n\n${"**a*\n".repeat(4_000)}\n\nAnother *word*.`);
  const html = blocks.map((block) => (block.kind === "html" ? block.html : ""));
  expect(html).toHaveLength(3);
  expect(html[0]).toContain("<em>word</em>");
  expect(html[1]).toContain("<p>**a*\n**a*\n");
  expect(html[2]).toContain("<em>word</em>");
});

const ORDINARY = [
  "## A heading\n\nA paragraph of some length, with **bold** and *slanted* words, `code` and a [link](https://example.org/a_b_c?d=e&f=g). ".repeat(3),
  "- one\n- two with `code`\n  - deeper **still**\n    - and [deeper](https://example.org)\n- three\n\n1. first\n2. second\n   ```python\n   print([x * y for x in z])\n   ```\n",
  "> A quote\n> > in a quote\n\n| a | b |\n|---|---|\n| *1* | `2` |\n| 3 | 4 |\n",
  "```json\n[{\"a_b\": [1, 2, \"*\"], \"c\": \"<d>\"}]\n```\n",
].join("\n");

test("ordinary Markdown of 200 kB is what marked makes of it", () => {
  const text = ORDINARY.repeat(Math.ceil(200_000 / ORDINARY.length));
  const marked = new Marked({ gfm: true });
  expect(marked.parser(new BoundedLexer().lex(text))).toBe(marked.parse(text));
});

test("a long list goes on in another one, at an item", () => {
  const text = Array.from({ length: 1_000 }, (_, i) => `${i + 1}. Item *${i + 1}*\n   - below it\n`).join("");
  const marked = new Marked({ gfm: true });
  const items = (html: string) => html.replace(/<\/ol>\s*<ol start="\d+">/g, "").replace(/\s+/g, "");
  const html = marked.parser(new BoundedLexer().lex(text));
  expect(html.match(/<ol/g)!.length).toBeGreaterThan(1);
  expect(items(html)).toBe(items(marked.parse(text) as string));
});
