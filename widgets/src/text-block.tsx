// Text exactly as it is: what would be invisible is shown as an escape, and what is folded away
// is counted and one click away.
import { createContext } from "preact";
import { useContext, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { BareButton } from "./button";
import { Faint } from "./faint";
import { count } from "./format";
import { useColours } from "./highlight";
import { isPlain, pieces } from "./visible";

const MOST_LINES = 16;
const MOST_CHARACTERS = 4_000;
/** Where a person decides on a text, all of it is there to be scrolled through; of a huge one, this much at first. */
const MOST_TO_DECIDE = 100_000;

/** Of what a person decides on: told 1 when something of it is not shown, and -1 when it is again. */
export const Cuts = createContext<((more: 1 | -1) => void) | null>(null);

type Props = { text: string; tone?: "added" | "removed"; language?: string };

export function TextBlock({ text, tone, language = "" }: Props) {
  const [whole, setWhole] = useState(false);
  const cuts = useContext(Cuts);
  const cut = useMemo(() => (cuts ? limit(text, MOST_TO_DECIDE) : fold(text)), [text, cuts !== null]);
  const shown = whole ? text : text.slice(0, cut);
  const rest = text.slice(cut);
  const missing = rest !== "" && !whole;
  useLayoutEffect(() => {
    if (!missing || !cuts) return;
    cuts(1);
    return () => cuts(-1);
  }, [missing, cuts]);
  // Colours show the text itself, so what hides in it would stay hidden.
  const plain = useMemo(() => isPlain(shown), [shown]);
  const html = useColours(shown, language, plain);
  return (
    <div class={tone ? `sagents-text sagents-${tone}` : "sagents-text"}>
      <pre tabIndex={cuts ? undefined : 0}>
        {html === null ? <Visible text={shown} /> : <code class="hljs" dangerouslySetInnerHTML={{ __html: html }} />}
        {text === "" && <Faint>(empty)</Faint>}
      </pre>
      {rest && (
        <BareButton class="sagents-link sagents-more" aria-expanded={whole} onClick={() => setWhole(!whole)}>
          {whole ? "Show less" : `Show ${more(rest)}`}
        </BareButton>
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
  return Math.min(byLines, limit(text, MOST_CHARACTERS));
}

function limit(text: string, most: number): number {
  const cut = text.length > most * 1.2 ? most : text.length;
  // Half of a surrogate pair would look like an invisible character.
  return /[\ud800-\udbff]/.test(text[cut - 1] ?? "") && cut < text.length ? cut - 1 : cut;
}

const lines = (text: string) => text.split("\n").length - (text.endsWith("\n") ? 1 : 0);

function more(rest: string): string {
  const left = lines(rest);
  return left > 1 ? count(left, "more line") : count(rest.length, "more character");
}
