// What an answer is taken from: its sources, and the markers in its text that lead to them.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { BareButton, linkTo } from "./button";
import { FaintLine } from "./faint";
import { Icon } from "./icons";
import { useFold } from "./memory";
import { ReadingContext } from "./reading";
import { Line, TextBlock } from "./text-block";
import type { Json } from "./protocol";

type Location = { document: string; line?: number; last_line?: number; page?: number; cell?: number; output?: boolean; row?: number | string };
/** Without a location no passage of that number was shown to the model. */
export type Citation = { number: number; location?: Location; quote?: string };

/** Those of an answer, and what shows one of them. */
export const CitationsContext = createContext<{ citations: Citation[]; show: (number: number) => void } | null>(null);

/** Those that are in the metadata of a message; providers have a key of that name, too. */
export function citationsIn(found: Json | undefined): Citation[] {
  const citations = Array.isArray(found) ? (found as unknown as (Citation | null)[]) : [];
  return citations.every((each) => typeof each?.number === "number") ? (citations as Citation[]) : [];
}

const UNVERIFIED = "not verified: no passage with this number was shown to the model";

/** Where it stands, in a few words: as `Location` of the package says it. */
export function placeOf({ document, line, last_line = line, page, cell, output, row }: Location): string {
  const said = [
    document,
    page !== undefined && `page ${page}`,
    row !== undefined && `row ${row}`,
    cell !== undefined && `${output ? "output of cell" : "cell"} ${cell}`,
  ].filter(Boolean);
  if (line === undefined) return said.join(", ");
  const lines = last_line === line ? `${line}` : `${line}-${last_line}`;
  if (said.length === 1) return `${document}:${lines}`;
  return `${said.join(", ")}, line${last_line === line ? "" : "s"} ${lines}`;
}

/** The sources of an answer, each of which opens its passage. */
export function Sources({ citations, place }: { citations: Citation[]; place: string }) {
  return (
    <section aria-label="Sources" data-testid="sources">
      {citations.map((each) => (
        <Source key={each.number} citation={each} place={`${place}.source.${each.number}`} />
      ))}
    </section>
  );
}

function Source({ citation: { number, location, quote = "" }, place }: { citation: Citation; place: string }) {
  const [open, fold] = useFold(place);
  const reading = useContext(ReadingContext);
  if (!location) return <FaintLine>{`[${number}] ${UNVERIFIED}`}</FaintLine>;
  const file = reading?.files.find(({ path, is_directory }) => path === location.document && !is_directory);
  return (
    <details class="sagents-thinking sagents-fold" data-source={number} {...fold}>
      <summary>
        <Icon name="chevron" />
        <span class="sagents-thinking-line">
          <Line text={`[${number}] ${placeOf(location)}`} />
        </span>
      </summary>
      {open && <TextBlock text={quote} />}
      {open && file && (
        <BareButton class="sagents-link" onClick={() => reading!.pick({ path: file.path })}>
          Open {file.path}
        </BareButton>
      )}
    </details>
  );
}

/** Opens the source of that number in the element, and goes there. */
export function showSource(root: Element, number: number): void {
  const source = root.querySelector<HTMLDetailsElement>(`[data-source="${number}"]`)!;
  source.open = true;
  source.querySelector("summary")!.focus();
}

// As `cited_numbers` of the package finds them.
const MARKER = /\[\d{1,6}(?:\s{0,2}[,;]\s{0,2}\d{1,6}){0,20}\]/g;

/** Makes the numbers of markers in the text of an answer lead to what they stand for. */
export function linkMarkers(content: DocumentFragment, citations: Citation[], show: (number: number) => void): void {
  const known = new Map(citations.map((each) => [each.number, each]));
  const texts = document.createTreeWalker(content, NodeFilter.SHOW_TEXT);
  const found: Text[] = [];
  while (texts.nextNode()) {
    const text = texts.currentNode as Text;
    if (text.data.match(MARKER) && !text.parentElement?.closest("a, code, pre, button")) found.push(text);
  }
  for (const text of found) {
    const pieces: (Node | string)[] = [];
    let end = 0;
    for (const marker of text.data.matchAll(MARKER)) {
      for (const { 0: number, index } of marker[0].matchAll(/\d+/g)) {
        const citation = known.get(Number(number));
        if (!citation) continue;
        pieces.push(text.data.slice(end, marker.index + index), markerOf(citation, number, show));
        end = marker.index + index + number.length;
      }
    }
    text.replaceWith(...pieces, text.data.slice(end));
  }
}

function markerOf({ number, location }: Citation, text: string, show: (number: number) => void): HTMLElement {
  const marker = location ? linkTo(() => show(number), text) : document.createElement("span");
  if (!location) {
    marker.className = "sagents-faint";
    marker.textContent = `${text}?`;
  }
  marker.title = location ? placeOf(location) : UNVERIFIED;
  return marker;
}
