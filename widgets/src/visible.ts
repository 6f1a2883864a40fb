// People approve what they see, so nothing in a tool's arguments may hide: control, bidi,
// zero-width and other invisible characters are told apart from the text around them.

/** Plain text, or one character that would not be seen, as its escape and its code point. */
export type Piece = { text: string; hidden?: string };

// Newlines and tabs are visible as layout; every other control, format, private or unassigned
// character, every separator but the space, and whatever Unicode lets renderers ignore is not.
const HIDDEN =
  /(?![\n\t \u3000])[\p{C}\p{Z}\p{Variation_Selector}\p{Default_Ignorable_Code_Point}\u2800\u034f\u115f\u1160\u3164\uffa0]/gu;

const NAMES: Record<number, string> = {
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

export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > from) found.push({ text: text.slice(from, match.index) });
    const code = match[0].codePointAt(0)!;
    const hex = code.toString(16).padStart(4, "0");
    const name = NAMES[code] ?? "invisible character";
    found.push({ text: `\\u{${hex}}`, hidden: `U+${hex.toUpperCase()} ${name}` });
    from = match.index + match[0].length;
  }
  if (from < text.length) found.push({ text: text.slice(from) });
  return found;
}

export function hasHidden(text: string): boolean {
  return text.search(HIDDEN) >= 0;
}

/** JSON with sorted keys, as the kernel's digest sees it, and with escapes for what hides. */
export function canonicalJson(value: unknown, indent = 2): string {
  const text = JSON.stringify(sortKeys(value), null, indent) ?? "null";
  return text.replace(HIDDEN, (character) =>
    [...Array(character.length).keys()]
      .map((i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (value === null || typeof value !== "object") return value;
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, sortKeys((value as never)[key])]));
}

/** Whether a number lost digits on its way: JavaScript knows integers only up to 2^53. */
export function hasInexactNumber(value: unknown): boolean {
  if (typeof value === "number") return Math.abs(value) > Number.MAX_SAFE_INTEGER;
  if (value === null || typeof value !== "object") return false;
  return Object.values(value).some(hasInexactNumber);
}
