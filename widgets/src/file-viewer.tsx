// One file as what it is: text, code in colours, a table, a notebook, an image; or raw. And what a person
// may do with it.
import { useEffect, useState } from "preact/hooks";
import { BareButton } from "./button";
import { ErrorText } from "./error-text";
import { Boundary } from "./boundary";
import { save, textOf } from "./bytes";
import { CopyButton } from "./copy";
import { parseCsv } from "./csv";
import { Faint, FaintLine } from "./faint";
import { canUndo, FileChanges, Undo, useChangedFile } from "./file-changes";
import { bytes, count } from "./format";
import { languageOf } from "./languages";
import { Icon } from "./icons";
import { Notebook } from "./notebook";
import { CodeBlock, RichText } from "./rich-text";
import { Line, TextBlock } from "./text-block";
import { useRequest } from "./use-store";
import type { FileChange, FileContent, FileEntry } from "./protocol";

const MOST_ROWS = 200;
/** Bytes of a notebook that are asked for whole: of one that was cut, nothing can be read. */
const LONGEST_NOTEBOOK = 5_000_000;

const IMAGE = /^image\/(?:png|jpeg|gif|webp)$/;
const isNotebook = (path: string) => /\.ipynb$/i.test(path);
const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);

type Props = {
  file: FileEntry;
  /** What the last run has done to it. */
  kind?: FileChange["kind"];
  /** Whether a run goes on. */
  going: boolean;
  onClose: () => void;
};

export function FileViewer({ file, kind, going, onClose }: Props) {
  const { path } = file;
  const gone = kind === "deleted";
  const changed = useChangedFile(file, kind);
  const { ask, error } = useRequest();
  const [content, setContent] = useState<FileContent | null>(null);
  const [raw, setRaw] = useState(false);
  const [compared, setCompared] = useState(false);
  const [asking, setAsking] = useState(false);
  const [undone, setUndone] = useState(false);
  const change = changed.change;
  useEffect(() => {
    if (change) setUndone(false);
    else setAsking(false);
  }, [change]);
  const pretty = /\.(md|markdown|csv|tsv|ipynb)$/i.test(path);

  useEffect(() => {
    // A file may be written again while it is read: the last answer that was asked for counts.
    let current = true;
    const read = async () => {
      let told = (await ask("read_file", { path }))?.file;
      if (told?.truncated && isNotebook(path) && told.size <= LONGEST_NOTEBOOK && current) {
        const whole = (await ask("read_file", { path, whole: true }))?.file;
        if (whole?.data) told = { ...whole, content: textOf(whole.data), truncated: false };
      }
      if (current && told) setContent(told);
    };
    if (!gone) void read();
    return () => {
      current = false;
    };
  }, [path, file.modified, file.size, gone]);

  return (
    <div class="sagents-viewer" data-testid="file-viewer" data-path={path}>
      <div class="sagents-viewer-head">
        <BareButton class="sagents-quiet" data-testid="file-back" aria-label="Back to the files" title="Back" onClick={onClose}>
          <Icon name="back" />
        </BareButton>
        <span class="sagents-viewer-path" title={path}>
          <bdi>
            <Line text={path} />
          </bdi>
        </span>
        {content && !gone && <Faint>{bytes(content.size)}</Faint>}
      </div>
      <div class="sagents-viewer-tools" role="group" aria-label={`What to do with ${nameOf(path)}`}>
        {content?.content != null && !gone && <CopyButton text={content.content} label="Copy" />}
        <CopyButton text={path} label="Copy path" />
        {content?.location && <CopyButton text={content.location} label="Copy path on disk" />}
        {!gone && <Download file={file} />}
        {pretty && !gone && (
          <BareButton class="sagents-quiet" data-testid="file-raw" disabled={compared} aria-pressed={raw} onClick={() => setRaw(!raw)}>
            Raw
          </BareButton>
        )}
        {/* Last, as they go when it is undone, and then nothing else takes their place. */}
        {change && !gone && (
          <BareButton class="sagents-quiet" data-testid="file-compare" aria-pressed={compared} onClick={() => setCompared(!compared)}>
            Changes
          </BareButton>
        )}
        {/* Nothing where it cannot be undone; the diff says why. */}
        {change && canUndo(change) && (
          <Undo
            going={going}
            paths={[path]}
            onAsking={setAsking}
            onDone={() => (kind === "new" ? onClose() : setUndone(true))}
          />
        )}
        {undone && !change && <Faint>Undone</Faint>}
      </div>
      <div class="sagents-viewer-body" tabIndex={0} role="group" aria-label={nameOf(path)}>
        {change && (gone || compared || asking) ? (
          <FileChanges change={change} undoing={asking} />
        ) : (
          <>
            <ErrorText text={gone ? changed.error : error} />
            {!content && !error && !changed.error && <p class="sagents-empty">Reading…</p>}
            {content && !gone && (
              <Boundary key={file.modified} instead={<TextBlock text={content.content ?? ""} />}>
                <Content content={content} raw={raw || !pretty} />
              </Boundary>
            )}
          </>
        )}
      </div>
      {content?.location && (
        <p class="sagents-viewer-place" data-testid="file-location">
          On the disk of the kernel: <code>{content.location}</code>
        </p>
      )}
    </div>
  );
}

function Download({ file: { path } }: { file: FileEntry }) {
  const { ask, busy, slow, error } = useRequest();
  const download = async () => {
    const whole = (await ask("read_file", { path, whole: true }))?.file;
    if (whole?.data !== undefined) save(nameOf(path), whole.data);
  };
  return (
    <>
      <BareButton class="sagents-quiet" data-testid="file-download" disabled={busy} onClick={download}>
        {slow ? "Waiting for the kernel…" : "Download"}
      </BareButton>
      <ErrorText text={error} />
    </>
  );
}

function Content({ content: file, raw }: { content: FileContent; raw: boolean }) {
  const { path, content, size, truncated, media_type = "", data } = file;
  if (content === null) {
    if (data && IMAGE.test(media_type)) return <img class="sagents-image" data-testid="file-image" alt={nameOf(path)} src={`data:${media_type};base64,${data}`} />;
    return IMAGE.test(media_type) ? (
      <p class="sagents-empty">An image of {bytes(size)} ({media_type}), too large to be shown here: download it to see it.</p>
    ) : (
      <p class="sagents-empty">
        A binary file of {bytes(size)}
        {media_type && ` (${media_type})`}.
      </p>
    );
  }
  const cut = truncated && (
    <FaintLine>The first {count(content.length, "character")}; the file goes on.</FaintLine>
  );
  const rows = !raw && /\.(csv|tsv)$/i.test(path) && parseCsv(content, /tsv$/i.test(path) ? "\t" : ",", truncated);
  if (rows && (rows.length > 1 || !truncated)) return <CsvTable rows={rows} cut={truncated} />;
  const written = (
    <>
      <CodeBlock code={content} language={languageOf(path)} bare />
      {cut}
    </>
  );
  if (raw || rows) return written;
  if (isNotebook(path)) return <Notebook text={content} instead={written} />;
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
        <FaintLine>
          The first {count(Math.min(rows.length, MOST_ROWS), "row")}; the file is longer than what is shown here.
        </FaintLine>
      ) : (
        rows.length > MOST_ROWS && (
          <FaintLine>
            The first {MOST_ROWS} of {count(rows.length, "row")}; see Raw for all.
          </FaintLine>
        )
      )}
    </>
  );
}
