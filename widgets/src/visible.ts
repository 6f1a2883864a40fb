// People approve what they see, so nothing in what a model wrote may hide or pass for something
// else: control, bidi, zero-width and other invisible characters, and letters that look like those
// of the word they are in, are told apart from the text around them; numbers are as Python has them.

/**
 * Plain text, or what is not what it seems, and what it is: one character that would not be seen,
 * as its escape, or a letter that looks like another.
 */
export type Piece = { text: string; really?: string };

// Newlines and tabs are visible as layout; every other control, format, private or unassigned
// character, every separator but the space, and whatever Unicode lets renderers ignore is not.
const HIDDEN =
  /(?![\n\t \u3000])[\p{C}\p{Z}\p{Variation_Selector}\p{Default_Ignorable_Code_Point}\u2800\u034f\u115f\u1160\u3164\uffa0]/gu;

// In one line, newlines and tabs would be taken for spaces.
const HIDDEN_IN_LINE = new RegExp(`${HIDDEN.source}|[\\n\\t]`, "gu");

const NAMES: Record<number, string> = {
  0x09: "tab",
  0x0a: "newline",
  0x0d: "carriage return",
  0x1b: "escape",
  0xa0: "no-break space",
  0xad: "soft hyphen",
  0x200b: "zero-width space",
  0x200c: "zero-width non-joiner",
  0x200d: "zero-width joiner",
  0x200e: "left-to-right mark",
  0x200f: "right-to-left mark",
  0x202a: "left-to-right embedding",
  0x202b: "right-to-left embedding",
  0x202c: "pop directional formatting",
  0x202d: "left-to-right override",
  0x202e: "right-to-left override",
  0x2066: "left-to-right isolate",
  0x2067: "right-to-left isolate",
  0x2068: "first strong isolate",
  0x2069: "pop directional isolate",
  0xfeff: "byte order mark",
};

/** `text` in pieces; `line` is for places that have one line. */
export function pieces(text: string, line = false): Piece[] {
  const marks = [...hidden(text, line ? HIDDEN_IN_LINE : HIDDEN), ...lookAlikes(text)].sort((a, b) => a.at - b.at);
  const found: Piece[] = [];
  let from = 0;
  for (const { at, length, ...piece } of marks) {
    if (at > from) found.push({ text: text.slice(from, at) });
    found.push(piece);
    from = at + length;
  }
  if (from < text.length) found.push({ text: text.slice(from) });
  return found;
}

/** Whether a text is what it seems. */
export const isPlain = (text: string) => pieces(text).every((piece) => !piece.really);

/** `text` with escapes, for attributes and for those who listen. */
export const spelledOut = (text: string) => pieces(text, true).map((piece) => piece.text).join("");

type Mark = Required<Piece> & { at: number; length: number };

const hex = (character: string) => character.codePointAt(0)!.toString(16).padStart(4, "0");
const unicode = (character: string) => `U+${hex(character).toUpperCase()}`;

function hidden(text: string, pattern: RegExp): Mark[] {
  return [...text.matchAll(pattern)].map(({ 0: found, index }) => {
    const really = `${unicode(found)} ${NAMES[found.codePointAt(0)!] ?? "invisible character"}`;
    return { text: `\\u{${hex(found)}}`, really, at: index, length: found.length };
  });
}

const WORD = /[\p{L}\p{M}\p{N}_]+/gu;
const LATIN = /\p{Script=Latin}/gu;
// The scripts that have letters which pass for Latin ones.
const OTHER = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Coptic}\p{Script=Lisu}]/gu;
// What may be an ASCII letter or digit in another form: fullwidth, mathematical, a Roman numeral.
const FORM = /(?![\0-\x7f])[\p{L}\p{Nd}\p{Nl}]/gu;

/** The letters of that script of a word which it has fewer of, and other forms of ASCII's. */
function lookAlikes(text: string): Mark[] {
  if (/^[\0-\x7f]*$/.test(text)) return [];
  return [...text.matchAll(WORD)].flatMap(({ 0: word, index }) => {
    const [latin, other] = [LATIN, OTHER].map((script) => [...word.matchAll(script)]) as [RegExpExecArray[], RegExpExecArray[]];
    const fewer = latin.length < other.length ? latin : other;
    const forms = [...word.matchAll(FORM)].filter(([letter]) => /^[a-z\d]$/i.test(letter.normalize("NFKC")));
    return [
      ...(latin.length > 0 ? fewer : []).map((match) => ({ match, really: "of another script than the word around it" })),
      ...forms.filter(({ index }) => !fewer.some((match) => match.index === index)).map((match) => ({ match, really: "looks like another" })),
    ].map(({ match, really }) => {
      const [letter] = match;
      return { text: letter, really: `${unicode(letter)} ${really}`, at: index + match.index, length: letter.length };
    });
  });
}

export function hasHidden(text: string): boolean {
  return text.search(HIDDEN) >= 0;
}

/** How numbers are written that JavaScript would show otherwise, by their places: JSON Pointers. */
export type Numbers = Record<string, string>;

/** The place of what is called `name` in what is at `place`. */
export const placeIn = (place: string, name: string | number) =>
  `${place}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;

/** JSON, with escapes for what hides. */
export function exactJson(value: unknown, indent = 2, numbers: Numbers = {}, place = ""): string {
  const write = (value: unknown, place: string, margin: string): string => {
    if (value === null || typeof value !== "object") return numbers[place] ?? JSON.stringify(value) ?? "null";
    const inner = margin + " ".repeat(indent);
    const list = Array.isArray(value);
    const items = list
      ? value.map((item, index) => write(item, placeIn(place, index), inner))
      : Object.keys(value).map((key) => `${JSON.stringify(key)}:${indent ? " " : ""}${write((value as never)[key], placeIn(place, key), inner)}`);
    const [open, close] = list ? "[]" : "{}";
    if (items.length === 0) return open! + close;
    return indent ? `${open}\n${inner}${items.join(`,\n${inner}`)}\n${margin}${close}` : open + items.join() + close;
  };
  return write(value, place, "").replace(HIDDEN, (character) =>
    [...Array(character.length).keys()]
      .map((i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}
