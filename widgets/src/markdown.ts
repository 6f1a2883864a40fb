// Markdown in blocks. While an answer streams in, all blocks but the last ones are finished: they
// keep their objects, so their DOM is never touched again, and only the tail is parsed.
import { Marked, type Token, type Tokens, type TokensList } from "marked";
import { formulas } from "./formulas";
import { classesOf } from "./highlight";
import { BoundedLexer } from "./lexer";

export type Block =
  | { kind: "html"; html: string; /** That of the headings in it. */ level?: number }
  | { kind: "code"; language: string; code: string; closed: boolean };

const escapes: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escape = (text: string) => text.replace(/[&<>"]/g, (character) => escapes[character]!);

const marked = new Marked({
  gfm: true,
  extensions: formulas,
  renderer: {
    code({ text, lang = "" }) {
      return `<pre><code class="${classesOf(lang.split(/\s/)[0]!)}">${escape(text)}</code></pre>`;
    },
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

/** The level of the heading that says who speaks. */
const SPEAKER = 2;
const DEEPEST = 6;

/** The block of a token that comes after a heading of the level `above`. */
function toBlock(token: Token, above: number): Block | null {
  if (token.type === "space" || token.type === "def") return null;
  if (token.type !== "code") {
    const html = marked.parser([token]);
    // Below who speaks, and never two levels below the heading before it, however a model counts.
    const asked = token.type === "heading" ? SPEAKER + (token as Tokens.Heading).depth : DEEPEST;
    return /<h[1-6]>/.test(html) ? { kind: "html", html, level: Math.min(asked, above + 1, DEEPEST) } : { kind: "html", html };
  }
  const { raw, text, lang = "", codeBlockStyle } = token as Tokens.Code;
  const fence = /^ {0,3}(`{3,}|~{3,})/.exec(raw)?.[1];
  const closed =
    codeBlockStyle === "indented" || (fence !== undefined && endsWithFence(raw, fence));
  return { kind: "code", language: lang.split(/\s/)[0]!, code: text, closed };
}

/** `blocks` with those of the tokens that come after them. */
function append(blocks: Block[], tokens: Token[]): Block[] {
  let above = blocks.map(levelOf).findLast((level) => level !== undefined) ?? SPEAKER;
  for (const token of tokens) {
    const block = toBlock(token, above);
    if (!block) continue;
    blocks.push(block);
    above = levelOf(block) ?? above;
  }
  return blocks;
}

const levelOf = (block: Block) => (block.kind === "html" ? block.level : undefined);

function endsWithFence(raw: string, fence: string): boolean {
  const lines = raw.trimEnd().split("\n");
  const last = lines.at(-1)!.trim();
  return lines.length > 1 && last.length >= fence.length && last === fence[0]!.repeat(last.length);
}

const DEFINITION = /^[ >]*\[[^\]]+\]:/m;

/** Parses a text that grows; `blocks` of what only grew cost the tail, not the whole. */
export class MarkdownStream {
  #text = "";
  /** Up to here blocks are finished; up to there lines have been asked. */
  #done = 0;
  #seen = 0;
  #finished: Block[] = [];
  #links: TokensList["links"] = {};

  blocks(text: string): Block[] {
    // A "\r" at the end reads as a newline, and so does the "\r\n" it may become.
    const normal = text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
    if (!normal.startsWith(this.#text)) this.#reset();
    this.#text = normal;

    this.#finish(normal.lastIndexOf("\n") + 1);
    return append([...this.#finished], this.#lex(normal.slice(this.#done)));
  }

  /** The blocks of a text that is complete; of one that grew here, those that there are stay. */
  whole(text: string): Block[] {
    // A link may be defined behind the blocks that use it.
    return this.#text && !DEFINITION.test(text) ? this.blocks(text) : parseMarkdown(text);
  }

  /**
   * Finishes the blocks before the last one of all complete lines. A line that is cut is not
   * asked, as it may change those before it: after a list "2" is a paragraph, "2. b" an item.
   */
  #finish(end: number): void {
    if (end <= this.#seen) return;
    this.#seen = end;
    const tokens = this.#lex(this.#text.slice(this.#done, end));
    const last = tokens.findLastIndex((token) => token.type !== "space");
    const finished = tokens.slice(0, Math.max(last, 0));
    append(this.#finished, finished);
    for (const token of finished) {
      // The first definition of a link counts.
      if (token.type === "def") this.#links[token.tag] ??= token as Tokens.Def;
      this.#done += token.raw.length;
    }
  }

  #lex(text: string): TokensList {
    const lexer = new BoundedLexer();
    Object.assign(lexer.tokens.links, this.#links);
    return lexer.lex(text);
  }

  #reset(): void {
    this.#done = 0;
    this.#seen = 0;
    this.#finished = [];
    this.#links = {};
  }
}

/** The blocks of a text that is complete. */
export function parseMarkdown(text: string): Block[] {
  const normal = text.replace(/\r\n?/g, "\n");
  return append([], new BoundedLexer().lex(normal));
}
