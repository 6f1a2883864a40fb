// A Jupyter notebook that the agent has written or read: its cells, and what they gave.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { FaintLine } from "./faint";
import { count } from "./format";
import { withoutColours } from "./problem";
import { CodeBlock, RichText } from "./rich-text";
import { TextBlock } from "./text-block";

const MOST_CELLS = 200;

type Output = { kind: "text" | "error" | "markdown"; text: string } | { kind: "image"; type: string; data: string };
export type Cell = { kind: "code" | "markdown" | "raw"; source: string; number: number | null; outputs: Output[] };

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);
/** The format has a text in one piece or as its lines. */
const textOf = (value: unknown): string =>
  typeof value === "string" ? value : Array.isArray(value) ? value.filter((line) => typeof line === "string").join("") : "";

/** The language and cells of a notebook, or null for what is none. */
export function notebookOf(text: string): { language: string; cells: Cell[] } | null {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(data) || !Array.isArray(data.cells)) return null;
  const metadata = isObject(data.metadata) ? data.metadata : {};
  const about = isObject(metadata.language_info) ? metadata.language_info : isObject(metadata.kernelspec) ? { name: metadata.kernelspec.language } : {};
  const cells = data.cells.filter(isObject).map((cell): Cell => {
    const kind = cell.cell_type === "code" || cell.cell_type === "markdown" ? cell.cell_type : "raw";
    const outputs = kind === "code" && Array.isArray(cell.outputs) ? cell.outputs.filter(isObject).map(outputOf) : [];
    const number = typeof cell.execution_count === "number" ? cell.execution_count : null;
    return { kind, source: textOf(cell.source), number, outputs };
  });
  return { language: typeof about.name === "string" ? about.name : "python", cells };
}

function outputOf(output: Record<string, unknown>): Output {
  if (output.output_type === "stream") return { kind: "text", text: withoutColours(textOf(output.text)) };
  if (output.output_type === "error") {
    const traceback = Array.isArray(output.traceback) ? output.traceback.map(textOf).join("\n") : "";
    return { kind: "error", text: withoutColours(traceback) || `${textOf(output.ename)}: ${textOf(output.evalue)}` };
  }
  const data = isObject(output.data) ? output.data : {};
  for (const type of ["image/png", "image/jpeg", "image/gif", "image/webp"]) {
    const image = textOf(data[type]).replace(/\s/g, "");
    if (/^[a-z\d+/]+={0,2}$/i.test(image)) return { kind: "image", type, data: image };
  }
  if ("text/markdown" in data) return { kind: "markdown", text: textOf(data["text/markdown"]) };
  if ("text/plain" in data) return { kind: "text", text: withoutColours(textOf(data["text/plain"])) };
  return { kind: "text", text: `[${Object.keys(data).join(", ") || "an empty output"}]` };
}

/** The cells; `instead` of what is no notebook. */
export function Notebook({ text, instead }: { text: string; instead: ComponentChildren }) {
  const notebook = useMemo(() => notebookOf(text), [text]);
  if (!notebook) return <>{instead}</>;
  const { language, cells } = notebook;
  return (
    <div class="sagents-notebook" data-testid="notebook">
      {cells.length === 0 && <p class="sagents-empty">A notebook without cells.</p>}
      {cells.slice(0, MOST_CELLS).map((cell, index) => (
        <CellView key={index} cell={cell} language={language} />
      ))}
      {cells.length > MOST_CELLS && (
        <FaintLine>
          The first {MOST_CELLS} of {count(cells.length, "cell")}; see Raw for all.
        </FaintLine>
      )}
    </div>
  );
}

function CellView({ cell: { kind, source, number, outputs }, language }: { cell: Cell; language: string }) {
  if (kind === "markdown") {
    return (
      <div class="sagents-cell" data-testid="notebook-cell" data-kind={kind}>
        <RichText text={source} />
      </div>
    );
  }
  return (
    <div class="sagents-cell" data-testid="notebook-cell" data-kind={kind}>
      {kind === "code" && <span class="sagents-cell-number">[{number ?? " "}]</span>}
      <CodeBlock code={source} language={kind === "code" ? language : ""} bare />
      {outputs.map((output, index) => (
        <div key={index} class="sagents-cell-output" data-kind={output.kind}>
          {output.kind === "image" ? (
            <img class="sagents-image" alt={`Output of cell ${number ?? ""}`.trim()} src={`data:${output.type};base64,${output.data}`} />
          ) : output.kind === "markdown" ? (
            <RichText text={output.text} />
          ) : (
            <TextBlock text={output.text} />
          )}
        </div>
      ))}
    </div>
  );
}
