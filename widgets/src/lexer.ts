// Marked's lexer within bounds. It calls itself for each level of nesting, and some of what it does
// takes time by the square of a length or worse: a few kB that nobody would write by hand took the
// page its stack, or minutes. What is beyond a bound is text, as it was written.
import { Lexer, Marked, Tokenizer, type Token, type Tokens } from "marked";
import { formulas } from "./formulas";

/** Levels of quotes, items, emphasis and links in each other. */
const DEEPEST = 24;
/** How often a character may be looked at, on average; short texts have this many looks in all. */
const LOOKS = 24;
const FEWEST_LOOKS = 200_000;
/** What a paragraph, item or quote costs however short it is. */
const BLOCK = 64;
/** The longest run of text, times what in it may open or close something. */
const RUN = 1_500_000;
const MARKS = /[*_~`[\]<!()\\&$]/g;

/** A line that goes deeper than that at once: it would be read again at each level. */
const TOO_DEEP = new RegExp(`^(?:[ \\t]*(?:>|(?:[*+-]|\\d{1,9}[.)])[ \\t])){${DEEPEST}}`);
/** A longer list goes on in another one: what it costs grows by the square of its lines. */
const LIST = 10_000;
const ITEM = /^(?:[*+-]|\d{1,9}[.)])[ \t]/gm;
/** Without an underline after so many characters it is no heading. */
const HEADING = 500;

const { extensions } = new Marked({ extensions: formulas }).defaults;

export class BoundedLexer extends Lexer {
  #depth = 0;
  #looks = 0;

  constructor() {
    super({ gfm: true, tokenizer: new BoundedTokenizer(), extensions });
  }

  override lex(source: string) {
    this.#looks = FEWEST_LOOKS + LOOKS * source.length;
    return super.lex(source);
  }

  // The declared type has overloads that one body cannot have.
  override blockTokens(source: string, tokens: any = [], clipped = false): any {
    if (!this.#enter(source.length)) {
      this.state.top = true;
      tokens.push({ type: "paragraph", raw: source, text: source, tokens: [plain(source)] });
      return tokens;
    }
    try {
      return super.blockTokens(source, tokens, clipped);
    } finally {
      this.#depth--;
    }
  }

  override inlineTokens(source: string, tokens: Token[] = []): Token[] {
    const cost = source.length * (source.match(MARKS)?.length ?? 0);
    if (cost > RUN || !this.#enter(source.length + cost / 16)) {
      tokens.push(plain(source));
      return tokens;
    }
    try {
      return super.inlineTokens(source, tokens);
    } finally {
      this.#depth--;
    }
  }

  #enter(looks: number): boolean {
    if (this.#depth >= DEEPEST || this.#looks < looks) return false;
    this.#looks -= looks + BLOCK;
    this.#depth++;
    return true;
  }
}

class BoundedTokenizer extends Tokenizer {
  override blockquote(source: string) {
    return TOO_DEEP.test(source) ? undefined : super.blockquote(source);
  }

  override list(source: string) {
    if (TOO_DEEP.test(source)) return undefined;
    const queued = this.lexer.inlineQueue.length;
    const first = source.slice(0, endOfLine(source, LIST));
    const list = super.list(first);
    if (!list || first.length === source.length || list.raw.length < first.trimEnd().length) return list;
    const item = [...first.matchAll(ITEM)].at(-1)?.index ?? 0;
    if (item === 0) return list;
    this.lexer.inlineQueue.length = queued;
    return super.list(first.slice(0, item));
  }

  override lheading(source: string) {
    return super.lheading(source.slice(0, endOfLine(source, HEADING)));
  }

  // Marked reads all the rows before it sees that the line under the head belongs to no table.
  override table(source: string) {
    const start = endOfLine(source, 0);
    return /[|:]/.test(source.slice(start, endOfLine(source, start))) ? super.table(source) : undefined;
  }
}

const plain = (text: string): Tokens.Text => ({ type: "text", raw: text, text, escaped: false });

/** Behind the first end of a line from there on. */
function endOfLine(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end < 0 ? text.length : end + 1;
}
