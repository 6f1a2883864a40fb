// Which files the last run has changed, asked of the kernel whenever files or runs have.
import { useEffect, useRef, useState } from "preact/hooks";
import type { FileChange, ViewState } from "./protocol";
import { useStore, useStoreState } from "./use-store";

type Kinds = Map<string, FileChange["kind"]>;

export function useRunChanges(): Kinds {
  const store = useStore();
  const state = useStoreState(store);
  const [kinds, setKinds] = useState<Kinds>(new Map());
  // One question at a time: a run may write many files, and a kernel may take its time.
  const asking = useRef(false);
  const again = useRef(false);
  const shown = useRef(true);
  useEffect(() => () => void (shown.current = false), []);

  const ask = async () => {
    again.current = true;
    if (asking.current) return;
    asking.current = true;
    while (again.current && shown.current) {
      again.current = false;
      try {
        const { changes = [] } = await store.request("read_changes");
        if (shown.current) setKinds(new Map(changes.map(({ path, kind }) => [path, kind])));
      } catch {
        again.current = false; // a closed session: the files are shown without
      }
    }
    asking.current = false;
  };
  useEffect(() => void ask(), [state?.files, newestRun(state)]);
  return kinds;
}

function newestRun(state: ViewState | null): string {
  const [id = "", run] = Object.entries(state?.runs ?? {}).at(-1) ?? [];
  return `${id} ${run?.status} ${run?.ended}`;
}
