// What an edit takes away and puts there, line by line, with nothing of it hidden.
import { diffLines } from "diff";
import { useMemo, useState } from "preact/hooks";
import { BareButton } from "./button";
import { Faint } from "./faint";
import { count } from "./format";
import { TextBlock, Visible } from "./text-block";

type Kind = "same" | "removed" | "added";
export type Line = { kind: Kind; text: string; /** Whether no newline follows. */ open: boolean };

/** Changed lines after which looking for what is common costs more than it shows. */
const MOST_CHANGES = 1_500;
/** Lines that a page can show one by one. */
const MOST_LINES = 5_000;
/** Unchanged lines round a change; longer runs of them fold. */
const AROUND = 3;

/** The lines of both texts in order, or null where there are too many. */
export function linesOf(from: string, to: string): Line[] | null {
  const changes = diffLines(from, to, { maxEditLength: MOST_CHANGES });
  const lines = changes?.flatMap(({ value, added, removed }) => {
    const kind: Kind = added ? "added" : removed ? "removed" : "same";
    const texts = value.split("\n");
    const open = texts.pop()!;
    const whole = texts.map((text): Line => ({ kind, text, open: false }));
    return open ? [...whole, { kind, text: open, open: true }] : whole;
  });
  return lines && lines.length <= MOST_LINES ? lines : null;
}

/** How many lines go and come. */
export function Counts({ from, to }: { from: string | null; to: string | null }) {
  const lines = useMemo(() => linesOf(from ?? "", to ?? ""), [from, to]);
  if (!lines) return null;
  const of = (kind: Kind) => lines.filter((line) => line.kind === kind).length;
  return (
    <span class="sagents-counts">
      <span class="sagents-plus">+{of("added")}</span> <span class="sagents-minus">−{of("removed")}</span>
    </span>
  );
}

export function Diff({ from, to }: { from: string; to: string }) {
  const lines = useMemo(() => linesOf(from, to), [from, to]);
  if (!lines) {
    return (
      <>
        <TextBlock text={from} tone="removed" />
        <TextBlock text={to} tone="added" />
      </>
    );
  }
  // Two texts of which only one ends its last line would otherwise look the same.
  const ends = new Set(lines.map(({ open }, index) => open && index >= lines.length - 2).filter(Boolean));
  const told = ends.size > 0 && from.endsWith("\n") !== to.endsWith("\n");
  return (
    <div class="sagents-text sagents-diff">
      <pre tabIndex={0}>
        {foldsOf(lines).map((run, index) =>
          run.folded ? <Fold key={index} lines={run.lines} /> : run.lines.map((line, n) => <Row key={`${index}.${n}`} line={line} told={told} />),
        )}
        {lines.length === 0 && <Faint>(empty)</Faint>}
      </pre>
    </div>
  );
}

const SIGNS: Record<Kind, string> = { same: " ", removed: "-", added: "+" };
const ROLES: Record<Kind, "deletion" | "insertion" | undefined> = { same: undefined, removed: "deletion", added: "insertion" };

function Row({ line: { kind, text, open }, told = false }: { line: Line; told?: boolean }) {
  return (
    <div class={`sagents-diff-line sagents-diff-${kind}`} role={ROLES[kind]}>
      <span class="sagents-diff-sign" aria-hidden="true">
        {SIGNS[kind]}
      </span>
      <span class="sagents-diff-text">
        <Visible text={text} />
        {open && told && <Faint> (no newline at the end)</Faint>}
      </span>
    </div>
  );
}

function Fold({ lines }: { lines: Line[] }) {
  const [open, setOpen] = useState(false);
  if (open) return <>{lines.map((line, n) => <Row key={n} line={line} />)}</>;
  return (
    <BareButton class="sagents-link sagents-diff-fold" onClick={() => setOpen(true)}>
      Show {count(lines.length, "unchanged line")}
    </BareButton>
  );
}

type Run = { folded: boolean; lines: Line[] };

/** The lines in runs; what is far from any change may fold. */
function foldsOf(lines: Line[]): Run[] {
  const near = lines.map(() => false);
  lines.forEach(({ kind }, index) => {
    if (kind === "same") return;
    for (let n = Math.max(0, index - AROUND); n <= Math.min(lines.length - 1, index + AROUND); n++) near[n] = true;
  });
  // Two equal texts have no change to be near to.
  if (!near.includes(true)) return [{ folded: false, lines }];
  const runs: Run[] = [];
  lines.forEach((line, index) => {
    if (runs.at(-1)?.folded !== !near[index]) runs.push({ folded: !near[index], lines: [] });
    runs.at(-1)!.lines.push(line);
  });
  return runs.map((run) => (run.lines.length <= AROUND ? { ...run, folded: false } : run));
}
