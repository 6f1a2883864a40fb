// The agent's files: a tree, and the file that was picked.
import { useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Faint } from "./faint";
import { Undo } from "./file-changes";
import { FileViewer } from "./file-viewer";
import { bytes, count } from "./format";
import { Icon } from "./icons";
import { useFold } from "./memory";
import { ReadingContext } from "./reading";
import { useRunChanges } from "./run-changes";
import { Line } from "./text-block";
import { useStore, useStoreState } from "./use-store";
import type { FileChange, FileEntry } from "./protocol";

type Props = { files: FileEntry[]; folding?: boolean };

/** A file, or a directory with what lies in it; `size` is that of all files in it. */
type Node = { path: string; name: string; file: FileEntry | null; inside: Node[]; size: number };
/** A node where it stands: how deep, as which of how many beside it, and in what. */
export type Row = { node: Node; level: number; place: number; beside: number; above: string };

/** Where sagents_nb keeps what it needs itself. */
const OWN = ".sagents";
/** So many files and directories are shown at once; of more, those in directories when these are opened. */
const MOST_UNFOLDED = 200;

const byName = new Intl.Collator("en", { numeric: true });

/** What lies at the top: directories before files, each by name, and numbers in names as numbers. */
export function treeOf(files: FileEntry[]): Node[] {
  const top: Node[] = [];
  const directories = new Map<string, Node>();
  const within = (path: string): Node[] => (path ? directoryAt(path).inside : top);
  function directoryAt(path: string): Node {
    let node = directories.get(path);
    if (!node) {
      const cut = path.lastIndexOf("/");
      node = { path, name: path.slice(cut + 1), file: null, inside: [], size: 0 };
      directories.set(path, node);
      within(path.slice(0, cut)).push(node);
    }
    return node;
  }
  for (const file of files) {
    const path = `/${file.path.split("/").filter(Boolean).join("/")}`;
    if (path === "/") continue;
    if (file.is_directory) directoryAt(path);
    else {
      const cut = path.lastIndexOf("/");
      within(path.slice(0, cut)).push({ path: file.path, name: path.slice(cut + 1), file, inside: [], size: file.size ?? 0 });
    }
  }
  const finish = (nodes: Node[]): number => {
    for (const node of nodes) if (!node.file) node.size = finish(node.inside);
    nodes.sort((a, b) => Number(a.file !== null) - Number(b.file !== null) || byName.compare(a.name, b.name));
    return nodes.reduce((sum, node) => sum + node.size, 0);
  };
  finish(top);
  return top;
}

/** The rows that are to be seen. */
export function rowsOf(nodes: Node[], isOpen: (path: string) => boolean, level = 1, above = ""): Row[] {
  return nodes.flatMap((node, index) => [
    { node, level, place: index + 1, beside: nodes.length, above },
    ...(!node.file && isOpen(node.path) ? rowsOf(node.inside, isOpen, level + 1, node.path) : []),
  ]);
}

const isOwn = (file: FileEntry) => file.path.split("/").includes(OWN);

/** How many files there are for people, "" for none. */
export const numberOf = (files: FileEntry[]) => files.filter((file) => !file.is_directory && !isOwn(file)).length || "";

export function Files({ files, folding = false }: Props) {
  const { picked, pick } = useContext(ReadingContext)!;
  const kinds = useRunChanges();
  const going = useStoreState(useStore())?.status === "running";
  // What the last run has deleted stands where it was, so that it can be brought back.
  const all = useMemo(() => {
    const there = new Set(files.map((file) => file.path));
    const gone = [...kinds].filter(([path, kind]) => kind === "deleted" && !there.has(path));
    return gone.length > 0 ? [...files, ...gone.map(([path]): FileEntry => ({ path }))] : files;
  }, [files, kinds]);
  const shown = useMemo(() => all.filter((file) => !isOwn(file)), [all]);
  const undoable = useMemo(() => shown.filter((file) => kinds.has(file.path)).map((file) => file.path), [shown, kinds]);
  // Where a person was in the tree, for when they come back from a file.
  const [place, setPlace] = useState("");
  const [turned, setTurned] = useState(new Map<string, boolean>());
  const back = useRef(false);
  const close = () => {
    back.current = true;
    pick({ path: "" });
  };
  const section = useRef<HTMLElement | null>(null);
  const [, fold] = useFold("files");
  const before = useRef(picked);
  useEffect(() => {
    if (picked === before.current) return;
    before.current = picked;
    if (!picked.path) return;
    if (folding) (section.current as HTMLDetailsElement).open = true;
    // Who has opened it, by a link elsewhere or from the tree that is gone now, is led to it.
    setTimeout(() => section.current?.querySelector<HTMLElement>("[data-testid=file-back]")?.focus());
  }, [picked]);

  const open = all.find((file) => file.path === picked.path);
  const content = open ? (
    <FileViewer key={open.path} file={open} kind={kinds.get(open.path)} going={going} onClose={close} />
  ) : (
    <>
      {undoable.length > 0 && (
        <div class="sagents-files-note">
          The last run changed {count(undoable.length, "file")}. <Undo going={going} paths={undoable} />
        </div>
      )}
      <Tree files={shown} kinds={kinds} turned={turned} onTurn={setTurned} place={place} onPlace={setPlace} back={back} onPick={(path) => pick({ path })} />
      {shown.length < all.length && (
        <p class="sagents-files-note" data-testid="own-files">
          <code>{OWN}</code> is not shown: sagents keeps its own data there.
        </p>
      )}
    </>
  );
  const title = (
    <>
      <span class="sagents-section-title">Files</span>
      <Faint>{numberOf(files)}</Faint>
    </>
  );
  if (folding) {
    return (
      <details class="sagents-section sagents-fold" ref={(element) => void (section.current = element)} {...fold}>
        <summary>
          <Icon name="chevron" />
          {title}
        </summary>
        {content}
      </details>
    );
  }
  return (
    <section class="sagents-section" ref={section}>
      {!open && <div class="sagents-section-head">{title}</div>}
      {all.length > 0 ? content : <p class="sagents-empty">No files yet.</p>}
    </section>
  );
}

type TreeProps = {
  files: FileEntry[];
  /** What the last run has done to them. */
  kinds: Map<string, FileChange["kind"]>;
  /** The directories that a person has opened or closed. */
  turned: Map<string, boolean>;
  onTurn: (turned: Map<string, boolean>) => void;
  place: string;
  onPlace: (path: string) => void;
  /** Whether a person comes back to it from a file. */
  back: { current: boolean };
  onPick: (path: string) => void;
};

function Tree({ files, kinds, turned, onTurn, place, onPlace, back, onPick }: TreeProps) {
  const root = useRef<HTMLUListElement>(null);
  const nodes = useMemo(() => treeOf(files), [files]);
  const isOpen = (path: string) => turned.get(path) ?? files.length <= MOST_UNFOLDED;
  const rows = rowsOf(nodes, isOpen);
  const at = Math.max(0, rows.findIndex(({ node }) => node.path === place));

  const turn = (path: string) => onTurn(new Map(turned).set(path, !isOpen(path)));
  const use = ({ node }: Row) => {
    onPlace(node.path);
    if (node.file) onPick(node.path);
    else turn(node.path);
  };
  const go = (index: number) => {
    const row = rows[index];
    if (!row) return;
    onPlace(row.node.path);
    root.current!.querySelectorAll<HTMLElement>('[role="treeitem"]')[index]!.focus();
  };
  useLayoutEffect(() => {
    // The button that was pressed in the viewer is gone, and the focus with it.
    if (back.current) go(at);
    back.current = false;
  }, []);

  // As https://www.w3.org/WAI/ARIA/apg/patterns/treeview says.
  const onKeyDown = (event: KeyboardEvent) => {
    const item = event.target instanceof Element && event.target.closest<HTMLElement>("[role=treeitem]");
    const here = rows.findIndex(({ node }) => item && node.path === item.dataset.path);
    const row = rows[here];
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const directory = row.node.file === null;
    const unfolded = directory && isOpen(row.node.path);
    const { key } = event;
    if (key === "ArrowDown") go(here + 1);
    else if (key === "ArrowUp") go(here - 1);
    else if (key === "Home") go(0);
    else if (key === "End") go(rows.length - 1);
    else if (key === "ArrowRight") {
      if (directory && !unfolded) turn(row.node.path);
      else if (unfolded && row.node.inside.length > 0) go(here + 1);
    } else if (key === "ArrowLeft") {
      if (unfolded) turn(row.node.path);
      else if (row.above) go(rows.findIndex(({ node }) => node.path === row.above));
    } else if (key === "Enter" || key === " ") use(row);
    else if (key.length === 1) {
      const after = [...rows.slice(here + 1), ...rows.slice(0, here + 1)];
      const found = after.find(({ node }) => node.name.toLowerCase().startsWith(key.toLowerCase()));
      if (found) go(rows.indexOf(found));
    } else return;
    event.preventDefault();
  };

  return (
    <ul class="sagents-files" role="tree" aria-label="Files" ref={root} onKeyDown={onKeyDown}>
      {rows.map((row, index) => {
        const { node } = row;
        return (
          <li
            key={node.path}
            role="treeitem"
            class="sagents-file"
            data-testid={node.file ? "file" : "directory"}
            data-path={node.path}
            style={{ paddingInlineStart: `${8 + 14 * (row.level - 1)}px` }}
            tabIndex={index === at ? 0 : -1}
            aria-level={row.level}
            aria-posinset={row.place}
            aria-setsize={row.beside}
            aria-expanded={node.file ? undefined : isOpen(node.path)}
            title={node.path}
            onFocus={() => onPlace(node.path)}
            onClick={() => use(row)}
          >
            {node.file ? <span class="sagents-file-turn" /> : <Icon name="chevron" />}
            <Icon name={node.file ? "file" : "folder"} />
            <span class="sagents-file-name">
              <Line text={node.name} />
            </span>
            {kinds.has(node.path) && (
              <span class="sagents-file-change" data-kind={kinds.get(node.path)}>
                {kinds.get(node.path)}
              </span>
            )}
            {kinds.get(node.path) !== "deleted" && (
              <Faint>
                {node.file ? node.file.size != null && bytes(node.file.size) : node.inside.length > 0 ? bytes(node.size) : "empty"}
              </Faint>
            )}
          </li>
        );
      })}
    </ul>
  );
}
