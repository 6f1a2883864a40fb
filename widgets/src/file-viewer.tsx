// One file: markdown as text, code in colours, CSV as a table; or all of them raw.
import { useEffect, useState } from "preact/hooks";
import { Boundary } from "./boundary";
import { CopyButton } from "./copy";
import { parseCsv } from "./csv";
import { bytes, count } from "./format";
import { languageOf } from "./highlight";
import { Icon } from "./icons";
import { CodeBlock, RichText } from "./rich-text";
import { Line, TextBlock } from "./text-block";
import { useRequest } from "./use-store";
import type { FileContent, FileEntry } from "./protocol";

const MOST_ROWS = 200;

export function FileViewer({ file, onClose }: { file: FileEntry; onClose: () => void }) {
  const { ask, error } = useRequest();
  const [content, setContent] = useState<FileContent | null>(null);
  const [raw, setRaw] = useState(false);
  const pretty = /\.(md|markdown|csv|tsv)$/i.test(file.path);

  useEffect(() => {
    // A file may be written again while it is read: the last answer that was asked for counts.
    let current = true;
    void ask("read_file", { path: file.path }).then((reply) => {
      if (current && reply?.file) setContent(reply.file);
    });
    return () => {
      current = false;
    };
  }, [file.path, file.modified, file.size]);

  return (
    <div class="sagents-viewer" data-testid="file-viewer" data-path={file.path}>
      <div class="sagents-viewer-head">
        <button type="button" class="sagents-quiet" data-testid="file-back" aria-label="Back to the files" title="Back" onClick={onClose}>
          <Icon name="back" />
        </button>
        <span class="sagents-viewer-path" title={file.path}>
          <bdi>
            <Line text={file.path} />
          </bdi>
        </span>
        {content && <span class="sagents-faint">{bytes(content.size)}</span>}
        {pretty && (
          <button type="button" class="sagents-quiet" data-testid="file-raw" aria-pressed={raw} onClick={() => setRaw(!raw)}>
            Raw
          </button>
        )}
        {content?.content != null && <CopyButton text={content.content} />}
      </div>
      <div class="sagents-viewer-body" tabIndex={0}>
        {error && <p class="sagents-error-text">{error}</p>}
        {!content && !error && <p class="sagents-empty">Reading…</p>}
        {content && (
          <Boundary key={file.modified} instead={<TextBlock text={content.content ?? ""} />}>
            <Content content={content} raw={raw || !pretty} />
          </Boundary>
        )}
      </div>
    </div>
  );
}

function Content({ content: { path, content, size, truncated }, raw }: { content: FileContent; raw: boolean }) {
  if (content === null) return <p class="sagents-empty">A binary file of {bytes(size)}.</p>;
  const cut = truncated && (
    <p class="sagents-faint">The first {count(content.length, "character")}; the file goes on.</p>
  );
  const rows = !raw && /\.(csv|tsv)$/i.test(path) && parseCsv(content, /tsv$/i.test(path) ? "\t" : ",", truncated);
  if (rows && (rows.length > 1 || !truncated)) return <CsvTable rows={rows} cut={truncated} />;
  if (raw || rows) {
    return (
      <>
        <CodeBlock code={content} language={languageOf(path)} bare />
        {cut}
      </>
    );
  }
  return (
    <>
      <RichText text={content} />
      {cut}
    </>
  );
}

function CsvTable({ rows: [head = [], ...rows], cut }: { rows: string[][]; cut: boolean }) {
  // A header stands over its column: to the right where the first value is a number.
  const aligned = (cell = "") => (/^-?[\d.,]+%?$/.test(cell) ? "sagents-number" : undefined);
  return (
    <>
      <div class="sagents-table-pane sagents-md" tabIndex={0}>
        <table>
          <thead>
            <tr>
              {head.map((cell, index) => (
                <th key={index} class={aligned(rows[0]?.[index])}>
                  {cell}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, MOST_ROWS).map((row, index) => (
              <tr key={index}>
                {row.map((cell, column) => (
                  <td key={column} class={aligned(cell)}>
                    {cell}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {cut ? (
        <p class="sagents-faint">
          The first {count(Math.min(rows.length, MOST_ROWS), "row")}; the file is longer than what is shown here.
        </p>
      ) : (
        rows.length > MOST_ROWS && (
          <p class="sagents-faint">
            The first {MOST_ROWS} of {count(rows.length, "row")}; see Raw for all.
          </p>
        )
      )}
    </>
  );
}
