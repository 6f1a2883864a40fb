// Formulas in Markdown: which text is one, and nothing else. By pandoc's rule a "$" opens before
// no space, and closes behind none and before no digit, so prices stay what they are.
import type { TokenizerAndRendererExtension, Tokens } from "marked";

export type Formula = { tex: string; display: boolean };

/** What a formula may be long, in characters: to look for the end of one costs as much. */
const LONGEST = 2_000;
const LONGEST_BLOCK = 10_000;
/** How many signs that close nothing are passed over. */
const MOST_TRIES = 8;
/** How far text is looked through for the next formula, at once: all of it each time would be its square. */
const AHEAD = 4_000;

const PAIRS: [string, string, boolean][] = [
  ["$$", "$$", true],
  ["\\[", "\\]", true],
  ["\\(", "\\)", false],
  ["$", "$", false],
];

/** Where `close` stands in `text`, from there on; what a backslash is before is not it. */
function indexOfClose(text: string, close: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    if (text.startsWith(close, at)) return at;
    if (text[at] === "\\") at++;
  }
  return -1;
}

/** The formula that a text begins with, and how much of it that is. */
function formulaAt(source: string): { raw: string; formula: Formula } | null {
  const pair = PAIRS.find(([open]) => source.startsWith(open));
  if (!pair) return null;
  const [open, close, display] = pair;
  const text = source.slice(0, LONGEST);
  let at = indexOfClose(text, close, open.length);
  for (let tries = 0; at >= 0 && tries < MOST_TRIES; at = indexOfClose(text, close, at + 1), tries++) {
    const tex = text.slice(open.length, at);
    // A blank line ends a paragraph, and code is code.
    if (/\n[ \t]*\n|`/.test(tex) || !tex.trim()) return null;
    if (open === "$") {
      if (/^\s/.test(tex)) return null;
      if (/\s$/.test(tex) || /\d/.test(text[at + 1] ?? "")) continue;
    }
    return { raw: text.slice(0, at + close.length), formula: { tex: tex.trim(), display } };
  }
  return null;
}

/** The formula that a text is, with its signs round it. */
export function formulaOf(text: string): Formula | null {
  const found = formulaAt(text.trim());
  return found && found.raw === text.trim() ? found.formula : blockAt(text)?.formula ?? null;
}

/** A formula on lines of its own; `formula` is null as long as its end has not come. */
function blockAt(source: string): { raw: string; formula: Formula | null } | null {
  const begin = /^ {0,3}(\$\$|\\\[)/.exec(source);
  if (!begin) return null;
  const close = begin[1] === "$$" ? "$$" : "\\]";
  const text = source.slice(0, LONGEST_BLOCK);
  const blank = text.search(/\n[ \t]*\n/);
  const at = indexOfClose(text, close, begin[0].length);
  if (at >= 0 && (blank < 0 || at < blank)) {
    const rest = /^[ \t]*(?:\n|$)/.exec(text.slice(at + close.length));
    const tex = text.slice(begin[0].length, at).trim();
    if (!rest || !tex) return null;
    return { raw: text.slice(0, at + close.length) + rest[0], formula: { tex, display: true } };
  }
  // What is written line by line may look like a list on its way.
  return at < 0 && blank < 0 && text.length === source.length ? { raw: source, formula: null } : null;
}

const escapes: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escape = (text: string) => text.replace(/[&<>"]/g, (character) => escapes[character]!);

/** As it was written, marked for who can set it. The class is one that the sanitiser lets through. */
const mark = (raw: string) => `<span class="hljs-formula">${escape(raw)}</span>`;

type FormulaToken = Tokens.Generic & { open?: boolean };

export const formulas: TokenizerAndRendererExtension[] = [
  {
    name: "formula",
    level: "inline",
    start: (source) => {
      const near = source.slice(0, AHEAD);
      const at = near.search(/\$|\\[([]/);
      if (at >= 0) return at;
      // No formula begins at that space either, but from there on the next look goes on.
      return near.length < source.length ? Math.max(near.lastIndexOf(" "), 0) || undefined : undefined;
    },
    tokenizer(source) {
      const found = formulaAt(source);
      return found ? { type: "formula", raw: found.raw } : undefined;
    },
    renderer: ({ raw }) => mark(raw),
  },
  {
    name: "formulaBlock",
    level: "block",
    tokenizer(source): FormulaToken | undefined {
      const found = blockAt(source);
      return found ? { type: "formulaBlock", raw: found.raw, open: found.formula === null } : undefined;
    },
    renderer: ({ raw, open }) => `<p>${open ? escape(raw) : mark(raw.trim())}</p>\n`,
  },
];
