// Markdown on the page: blocks of sanitised HTML, and code blocks with a copy button.
import { createContext } from "preact";
import { useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { BareButton, linkTo } from "./button";
import { CitationsContext, linkMarkers } from "./citations";
import { CopyButton, copyButtonFor } from "./copy";
import type { Diagram } from "./diagrams";
import { colourMarked, useColours } from "./highlight";
import { useLatestFirst } from "./latest-first";
import { MarkdownStream, type Block } from "./markdown";
import { ReadingContext } from "./reading";
import { sanitize, targets } from "./sanitize";
import { useSeen } from "./seen";
import { typeset } from "./typesetter";
import { useStore } from "./use-store";

/** Characters after which blocks are in another run. */
const RUN = 4_000;

/** Told after a text has been drawn further by itself. */
export const Drawn = createContext(() => {});

/** A complete text as markdown, or, with `streaming`, one that grows. */
export function RichText({ text, streaming = false }: { text: string; streaming?: boolean }) {
  const stream = useMemo(() => new MarkdownStream(), []);
  const before = useRef<Block[][]>([]);
  const runs = useMemo(() => {
    const blocks = streaming ? stream.blocks(text) : stream.whole(text);
    return (before.current = runsOf(blocks, before.current));
  }, [text, streaming]);
  const from = useLatestFirst(runs.length, (index) => runs[index]!.reduce((sum, block) => sum + lengthOf(block), 0));
  const drawn = useContext(Drawn);
  const first = useRef(from);
  useLayoutEffect(() => {
    if (from !== first.current) drawn();
  }, [from]);
  return <div class="sagents-md">{runs.map((run, index) => index >= from && <Run key={index} blocks={run} />)}</div>;
}

const lengthOf = (block: Block) => (block.kind === "html" ? block.html : block.code).length;

/**
 * The blocks in runs, each of which is compared, laid out and painted as one: what grows costs its
 * last run. A run of the same blocks as one `before` is the same object.
 */
function runsOf(blocks: Block[], before: Block[][]): Block[][] {
  const runs: Block[][] = [];
  let length = RUN;
  for (const block of blocks) {
    if (length >= RUN) {
      runs.push([]);
      length = 0;
    }
    runs.at(-1)!.push(block);
    length += lengthOf(block);
  }
  return runs.map((run, index) => {
    const old = before[index];
    return old?.length === run.length && run.every((block, place) => block === old[place]) ? old : run;
  });
}

function Run({ blocks }: { blocks: Block[] }) {
  return useMemo(
    () => (
      <div class="sagents-md-run">
        {blocks.map((block, index) => (
          <BlockView key={index} block={block} />
        ))}
      </div>
    ),
    [blocks],
  );
}

function BlockView({ block }: { block: Block }) {
  if (block.kind === "html") return <HtmlBlock {...block} />;
  const { code, language, closed } = block;
  return <CodeBlock code={code} language={language} coloured={closed} />;
}

function HtmlBlock({ html, level }: { html: string; level?: number }) {
  const root = useRef<HTMLDivElement>(null);
  const reading = useContext(ReadingContext);
  const cited = useContext(CitationsContext);
  const files = html.includes('href="/') && reading?.files;
  useLayoutEffect(() => {
    const content = sanitize(html);
    for (const pre of content.querySelectorAll("pre")) pre.append(copyButtonFor(pre.textContent));
    for (const heading of content.querySelectorAll("h1, h2, h3, h4, h5, h6")) heading.setAttribute("aria-level", `${level}`);
    for (const table of content.querySelectorAll("table")) {
      const pane = document.createElement("div");
      pane.className = "sagents-table-pane";
      pane.tabIndex = 0;
      table.replaceWith(pane);
      pane.append(table);
    }
    for (const link of files ? content.querySelectorAll("a") : []) {
      const file = files && files.find(({ path, is_directory }) => !is_directory && encodeURI(path) === targets.get(link));
      // The page has nothing at that address.
      if (file) link.replaceWith(linkTo(() => reading!.pick({ path: file.path }), ...link.childNodes));
    }
    if (cited) linkMarkers(content, cited.citations, cited.show);
    root.current!.replaceChildren(content);
    const forget = [typeset(root.current!), colourMarked(root.current!)];
    return () => forget.forEach((one) => one());
  }, [html, level, files, cited]);
  return <div class="sagents-md-block" ref={root} />;
}

type CodeProps = { code: string; language?: string; coloured?: boolean; bare?: boolean };

/** Code with its language and a copy button. Plain while it grows, so a selection survives, and until it is near. */
export function CodeBlock({ code, language = "", coloured = true, bare = false }: CodeProps) {
  const root = useRef<HTMLDivElement>(null);
  const seen = useSeen(root, !bare, language !== "mermaid");
  const html = useColours(code, language, coloured && seen);
  const diagram = useDiagram(code, language === "mermaid" && coloured && seen && !bare);
  const [asCode, setAsCode] = useState(false);
  const drawn = useContext(Drawn);
  return (
    <div class="sagents-code" ref={root}>
      {!bare && (
        <div class="sagents-code-head">
          <span>{language || "text"}</span>
          {diagram && (
            <BareButton class="sagents-quiet" data-testid="as-code" aria-pressed={asCode} onClick={() => setAsCode(!asCode)}>
              Code
            </BareButton>
          )}
          <CopyButton text={code} />
        </div>
      )}
      {diagram && !asCode ? (
        <div class="sagents-diagram" tabIndex={0}>
          <img data-testid="diagram" alt="Diagram" {...diagram} onLoad={drawn} />
        </div>
      ) : (
        <pre tabIndex={0}>
          {html === null ? (
            <code key="plain">{code}</code>
          ) : (
            <code key="coloured" class="hljs" dangerouslySetInnerHTML={{ __html: html }} />
          )}
        </pre>
      )}
    </div>
  );
}

/** A diagram's image, once the host has drawn it. */
function useDiagram(source: string, wanted: boolean): Diagram | null {
  const store = useStore();
  const [diagram, setDiagram] = useState<Diagram | null>(null);
  useEffect(() => {
    if (!wanted) return;
    let current = true;
    void store.transport.drawDiagram(source).then((drawn) => current && setDiagram(drawn));
    return () => {
      current = false;
    };
  }, [source, wanted]);
  return wanted ? diagram : null;
}
