// Text exactly as it is: what would be invisible is shown as an escape, and what is folded away
// is counted and one click away.
import { useMemo, useState } from "preact/hooks";
import { count } from "./format";
import { pieces } from "./visible";

const MOST_LINES = 16;
const MOST_CHARACTERS = 4_000;

type Props = { text: string; tone?: "added" | "removed" };

export function TextBlock({ text, tone }: Props) {
  const [whole, setWhole] = useState(false);
  const cut = useMemo(() => fold(text), [text]);
  const shown = whole ? text : text.slice(0, cut);
  const rest = text.slice(cut);
  return (
    <div class={tone ? `sagents-text sagents-${tone}` : "sagents-text"}>
      <pre tabIndex={0}>
        <Visible text={shown} />
        {text === "" && <span class="sagents-faint">(empty)</span>}
      </pre>
      {rest && (
        <button type="button" class="sagents-link sagents-more" aria-expanded={whole} onClick={() => setWhole(!whole)}>
          {whole ? "Show less" : `Show ${more(rest)}`}
        </button>
      )}
    </div>
  );
}

/** Text with escapes, told apart from the same escapes written out by their looks. */
export function Visible({ text, line = false }: { text: string; line?: boolean }) {
  return (
    <>
      {pieces(text, line).map((piece, index) =>
        piece.really ? (
          <span key={index} class="sagents-hidden-character" title={piece.really}>
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
    </>
  );
}

/** The same in a place of one line. */
export const Line = ({ text }: { text: string }) => <Visible text={text} line />;

/** Where to cut: after so many lines or characters, but not to spare only a line or two. */
function fold(text: string): number {
  let end = -1;
  for (let line = 0; line < MOST_LINES; line++) {
    end = text.indexOf("\n", end + 1);
    if (end < 0) break;
  }
  const byLines = end < 0 || lines(text.slice(end + 1)) < 4 ? text.length : end + 1;
  const cut = Math.min(byLines, text.length > MOST_CHARACTERS * 1.2 ? MOST_CHARACTERS : text.length);
  // Half of a surrogate pair would look like an invisible character.
  return /[\ud800-\udbff]/.test(text[cut - 1] ?? "") ? cut - 1 : cut;
}

const lines = (text: string) => text.split("\n").length - (text.endsWith("\n") ? 1 : 0);

function more(rest: string): string {
  const left = lines(rest);
  return left > 1 ? count(left, "more line") : count(rest.length, "more character");
}
