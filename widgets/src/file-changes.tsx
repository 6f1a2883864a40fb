// What the last run has done to a file: the lines that went and came, and Undo.
import { useEffect, useState } from "preact/hooks";
import { BareButton } from "./button";
import { ErrorText } from "./error-text";
import { Diff } from "./diff";
import { FaintLine } from "./faint";
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

const UNDO: Record<Kind, string> = { new: "Undo: delete it", changed: "Undo", deleted: "Undo: bring it back" };

/** Nothing where it cannot be undone; the diff says why. */
export function UndoButton({ change, going, onDone }: { change: ChangedFile; going: boolean; onDone: () => void }) {
  const { ask, busy, error } = useRequest();
  const undo = async () => {
    if (await ask("undo_change", { path: change.path })) onDone();
  };
  if (!change.kept || change.since) return null;
  return (
    <>
      <BareButton
        class="sagents-quiet"
        data-testid="file-undo"
        disabled={busy || going}
        title={going ? "The run still goes on" : "Make the file what it was before the last run"}
        onClick={undo}
      >
        {UNDO[change.kind]}
      </BareButton>
      <ErrorText text={error} />
    </>
  );
}

const SAID: Record<Kind, string> = {
  new: "The last run made this file.",
  changed: "The last run changed this file.",
  deleted: "The last run deleted this file.",
};

export function FileChanges({ change }: { change: ChangedFile }) {
  const { kind, before, after, kept, since } = change;
  const told = kept && (kind === "deleted" || after !== null);
  return (
    <div class="sagents-changes" data-testid="file-changes">
      <FaintLine>
        {SAID[kind]}
        {!kept && " What it was is not known: only texts of up to 200 kB are kept, once there is a panel."}
        {since && " It has changed since, so that cannot be undone here."}
        {kept && !told && " It is no text, or too long to be compared here."}
      </FaintLine>
      {told && <Diff from={before ?? ""} to={after ?? ""} />}
    </div>
  );
}
