// The agent's files: a tree, and the file that was picked.
import { useMemo, useState } from "preact/hooks";
import { FileViewer } from "./file-viewer";
import { bytes } from "./format";
import { Icon } from "./icons";
import { Line } from "./text-block";
import type { FileEntry } from "./protocol";

type Props = { files: FileEntry[]; folding?: boolean; onRead?: (reading: boolean) => void };
export type Row = { path: string; name: string; depth: number; file: FileEntry | null };

/** The rows of the tree, directories first seen where their first file is. */
export function rowsOf(files: FileEntry[], closed: Set<string>): Row[] {
  const rows: Row[] = [];
  const seen = new Set<string>();
  for (const file of files) {
    const names = file.path.split("/").filter(Boolean);
    let path = "";
    let hidden = false;
    names.forEach((name, depth) => {
      path += `/${name}`;
      const directory = depth < names.length - 1 || file.is_directory === true;
      if (!hidden && !(directory && seen.has(path))) {
        rows.push({ path: directory ? path : file.path, name, depth, file: directory ? null : file });
      }
      if (directory) seen.add(path);
      hidden ||= closed.has(path);
    });
  }
  return rows;
}

export function Files({ files, folding = false, onRead }: Props) {
  const [picked, setPicked] = useState("");
  const [closed, setClosed] = useState(new Set<string>());
  const rows = useMemo(() => rowsOf(files, closed), [files, closed]);
  const count = files.filter((file) => !file.is_directory).length;
  const pick = (path: string) => {
    setPicked(path);
    onRead?.(path !== "");
  };
  const toggle = (path: string) => {
    const next = new Set(closed);
    if (!next.delete(path)) next.add(path);
    setClosed(next);
  };

  const open = files.find((file) => file.path === picked);
  const content = open ? (
    <FileViewer key={open.path} file={open} onClose={() => pick("")} />
  ) : (
    <ul class="sagents-files" aria-label="Files">
      {rows.map((row) => (
        <li key={row.path}>
          <button
            type="button"
            class="sagents-file"
            data-testid={row.file ? "file" : "directory"}
            data-path={row.path}
            style={{ paddingInlineStart: `${8 + 14 * row.depth}px` }}
            aria-expanded={row.file ? undefined : !closed.has(row.path)}
            title={row.path}
            onClick={() => (row.file ? pick(row.path) : toggle(row.path))}
          >
            <Icon name={row.file ? "file" : "folder"} />
            <span class="sagents-file-name">
              <Line text={row.name} />
            </span>
            {row.file?.size != null && <span class="sagents-faint">{bytes(row.file.size)}</span>}
          </button>
        </li>
      ))}
    </ul>
  );
  const title = (
    <>
      <span class="sagents-section-title">Files</span>
      <span class="sagents-faint">{count || ""}</span>
    </>
  );
  if (folding) {
    return (
      <details class="sagents-section sagents-fold">
        <summary>
          <Icon name="chevron" />
          {title}
        </summary>
        {content}
      </details>
    );
  }
  return (
    <section class="sagents-section">
      {!open && <div class="sagents-section-head">{title}</div>}
      {files.length > 0 ? content : <p class="sagents-empty">No files yet.</p>}
    </section>
  );
}
