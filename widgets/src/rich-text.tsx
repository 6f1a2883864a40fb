// Markdown on the page: blocks of sanitised HTML, and code blocks with a copy button.
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { CopyButton, copyButtonFor } from "./copy";
import { highlight } from "./highlight";
import { MarkdownStream, type Block } from "./markdown";
import { sanitize } from "./sanitize";

/** A complete text as markdown, or, with `streaming`, one that grows. */
export function RichText({ text, streaming = false }: { text: string; streaming?: boolean }) {
  const stream = useMemo(() => new MarkdownStream(), []);
  const blocks = useMemo(
    () => (streaming ? stream.blocks(text) : stream.whole(text)),
    [text, streaming],
  );
  return (
    <div class="sagents-md">
      {blocks.map((block, index) => (
        <BlockView key={index} block={block} />
      ))}
    </div>
  );
}

function BlockView({ block }: { block: Block }) {
  if (block.kind === "html") return <HtmlBlock html={block.html} />;
  const { code, language, closed } = block;
  return <CodeBlock code={code} language={language} coloured={closed} />;
}

function HtmlBlock({ html }: { html: string }) {
  const root = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const content = sanitize(html);
    for (const pre of content.querySelectorAll("pre")) pre.append(copyButtonFor(pre.textContent));
    for (const table of content.querySelectorAll("table")) {
      const pane = document.createElement("div");
      pane.className = "sagents-table-pane";
      table.replaceWith(pane);
      pane.append(table);
    }
    root.current!.replaceChildren(content);
  }, [html]);
  return <div class="sagents-md-block" ref={root} />;
}

type CodeProps = { code: string; language?: string; coloured?: boolean; bare?: boolean };

/** Code with its language and a copy button. Plain while it grows, so a selection survives. */
export function CodeBlock({ code, language = "", coloured = true, bare = false }: CodeProps) {
  const html = useMemo(() => (coloured ? highlight(code, language) : null), [code, language, coloured]);
  return (
    <div class="sagents-code">
      {!bare && (
        <div class="sagents-code-head">
          <span>{language || "text"}</span>
          <CopyButton text={code} />
        </div>
      )}
      <pre tabIndex={0}>
        {html === null ? (
          <code key="plain">{code}</code>
        ) : (
          <code key="coloured" class="hljs" dangerouslySetInnerHTML={{ __html: html }} />
        )}
      </pre>
    </div>
  );
}
