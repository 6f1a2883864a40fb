// What went wrong, in a sentence; the traceback it came with is one click away.
import { useMemo } from "preact/hooks";
import { TextBlock, Visible } from "./text-block";

/** Colours of a terminal, which a traceback of IPython has. */
const ANSI = /\u001b\[[\d;]*m/g;
export const withoutColours = (text: string) => text.replace(ANSI, "");
const LONGEST = 400;

/** The sentence for people, and the whole text where it says more. */
export function problemOf(text: string): { sentence: string; whole: string } {
  const clean = withoutColours(text).trim();
  const lines = clean.split("\n");
  const [, line] = /^\s*File ".*", line (\d+)$/.exec(lines[0]!) ?? []; // of a SyntaxError, which was raised nowhere
  const traceback = line ? 0 : lines.findIndex((line) => /^\s*Traceback \(most recent call last\)/.test(line) || /^-{20,}$/.test(line));
  // A traceback ends with what was raised; whatever else is long begins with what it is about.
  const last = lines.findLastIndex((line) => /^[\w.]+(?:Error|Exception|Warning|Interrupt|Exit|Iteration|Group)?\b: |^[\w.]*(?:Error|Exception|Interrupt|Exit)$/.test(line));
  const sentence = (traceback >= 0 && last > traceback ? lines[last]! + (line ? ` (line ${line})` : "") : (lines[0] ?? "")).trim();
  const short = sentence.length > LONGEST ? `${sentence.slice(0, LONGEST)}…` : sentence;
  return { sentence: short, whole: short === clean ? "" : clean };
}

export function Problem({ text }: { text: string }) {
  const { sentence, whole } = useMemo(() => problemOf(text), [text]);
  return (
    <div class="sagents-problem">
      <div>
        <Visible text={sentence} />
      </div>
      {whole && (
        <details class="sagents-fold-plain">
          <summary>{/Traceback|^-{20,}$/m.test(whole) ? "Traceback" : "All of it"}</summary>
          <TextBlock text={whole} />
        </details>
      )}
    </div>
  );
}
