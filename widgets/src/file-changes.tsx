// What the last run has done to files: the lines that went and came, and the way back.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { BareButton, Button } from "./button";
import { ErrorText } from "./error-text";
import { Counts, Diff } from "./diff";
import { Faint, FaintLine } from "./faint";
import { Line } from "./text-block";
import { useRequest } from "./use-store";
import type { ChangedFile, FileChange, FileEntry } from "./protocol";

type Kind = FileChange["kind"];

/** The change as the kernel knows it; asked for again when the file, or what was done to it, is another. */
export function useChangedFile(file: FileEntry, kind: Kind | undefined) {
  const { ask, error } = useRequest();
  const [change, setChange] = useState<ChangedFile | null>(null);
  useEffect(() => {
    let current = true;
    if (!kind) setChange(null);
    else {
      void ask("read_change", { path: file.path }).then((reply) => {
        if (current) setChange(reply?.change ?? null);
      });
    }
    return () => {
      current = false;
    };
  }, [file.path, file.modified, file.size, kind]);
  return { change, error };
}

/** Whether the text before the run can take the place of what there is now. */
export const canUndo = ({ kept, since }: ChangedFile) => kept && !since;

type UndoProps = {
  going: boolean;
  /** The files that it is about. */
  paths: string[];
  /** Is told while it asks. */
  onAsking?: (asking: boolean) => void;
  onDone?: () => void;
};

/** So many files are told one by one, and undone at once. */
const MOST_UNDONE = 50;

/** What is undone cannot be had back: so it asks first, in its own place, and tells what becomes of each file. */
export function Undo({ going, paths, onAsking, onDone }: UndoProps) {
  const { ask, busy, error } = useRequest();
  const [told, setTold] = useState<ChangedFile[]>([]);
  const own = useRef<HTMLButtonElement>(null);
  const keep = useRef<HTMLButtonElement>(null);
  const asking = told.length > 0 && !going;
  const left = told.filter(canUndo);
  // What does no harm has the focus, and then the button that was clicked.
  const was = useRef(false);
  useLayoutEffect(() => {
    if (asking !== was.current) (asking ? keep : own).current?.focus({ preventScroll: true });
    was.current = asking;
    onAsking?.(asking);
  }, [asking]);
  const close = () => setTold([]);
  const open = async () => {
    const changes: ChangedFile[] = [];
    for (const path of paths.slice(0, MOST_UNDONE)) {
      const change = (await ask("read_change", { path }))?.change;
      if (change) changes.push(change);
    }
    setTold(changes);
  };
  const undo = async () => {
    for (const change of left) {
      if (!(await ask("undo_change", { path: change.path }))) return;
      setTold((told) => told.filter((each) => each !== change));
    }
    close();
    onDone?.();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || event.isComposing) return;
    event.preventDefault();
    close();
  };
  return (
    <>
      <BareButton
        ref={own}
        class="sagents-quiet"
        data-testid="file-undo"
        disabled={busy || going}
        aria-expanded={asking}
        title={going ? "The run still goes on" : "Undo what the last run did to files"}
        onClick={asking ? close : open}
      >
        Undo…
      </BareButton>
      {asking && (
        <div class="sagents-undo sagents-changes" role="group" aria-label="Undo what the last run did?" onKeyDown={onKeyDown}>
          <ul>
            {told.map((change) => (
              <li key={change.path} class="sagents-queued">
                <span class="sagents-queued-text" title={change.path}>
                  <Line text={change.path} />
                </span>
                <Faint>{canUndo(change) ? BECOMES[change.kind] : `stays: ${change.since ? "changed since" : "not known before"}`}</Faint>
                {canUndo(change) && <Counts from={change.after} to={change.before} />}
              </li>
            ))}
          </ul>
          <div class="sagents-actions">
            <Button ref={keep} data-testid="undo-keep" onClick={close}>
              Keep
            </Button>
            <Button kind="danger" data-testid="undo-yes" disabled={busy || left.length === 0} onClick={undo}>
              Undo{left.length > 1 && ` ${left.length} files`}
            </Button>
          </div>
        </div>
      )}
      <ErrorText text={error} />
    </>
  );
}

const BECOMES: Record<Kind, string> = { new: "is deleted", changed: "goes back", deleted: "comes back" };

const SAID: Record<Kind, string> = {
  new: "The last run made this file.",
  changed: "The last run changed this file.",
  deleted: "The last run deleted this file.",
};

/** What the run did; with `undoing` what its undoing would do: the same lines the other way round. */
export function FileChanges({ change, undoing }: { change: ChangedFile; undoing: boolean }) {
  const { kind, before, after, kept, since } = change;
  const told = kept && (kind === "deleted" || after !== null);
  return (
    <div class="sagents-changes" data-testid="file-changes">
      <FaintLine>
        {undoing ? "Undo does this to the file:" : SAID[kind]}
        {!kept && " What it was is not known: only texts of up to 200 kB are kept, once there is a panel."}
        {since && " It has changed since, so that cannot be undone here."}
        {kept && !told && " It is no text, or too long to be compared here."}
      </FaintLine>
      {told && <Diff from={(undoing ? after : before) ?? ""} to={(undoing ? before : after) ?? ""} />}
    </div>
  );
}
