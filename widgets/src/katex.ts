// What sets formulas. It is a file of its own, which a page is given when the first formula comes.
import katex from "katex";

/** MathML of `tex`, or null where it is none. Needs no fonts and no style sheet: browsers set it. */
export function mathml(tex: string, displayMode: boolean): string | null {
  try {
    return katex.renderToString(tex, {
      displayMode,
      output: "mathml",
      // What a model wrote: no links, no images, no endless macros.
      trust: false,
      strict: "ignore",
      maxExpand: 500,
      maxSize: 20,
    });
  } catch {
    return null;
  }
}
