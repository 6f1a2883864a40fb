// The file that a waiting call would change, asked of the kernel: the call alone does not say it.
import { useContext, useEffect, useState } from "preact/hooks";
import { needsBefore } from "./changes";
import { MemoryContext } from "./memory";
import type { ActionRequest } from "./protocol";
import { useStore, useStoreState } from "./use-store";

/** The file's text; null if there is none, undefined as long as it is not known. */
export function useBefore({ tool_call_id, tool_name, arguments: values = {}, digest = "" }: ActionRequest): string | null | undefined {
  const store = useStore();
  const files = useStoreState(store)?.files;
  const { befores } = useContext(MemoryContext);
  const path = needsBefore(tool_name) && typeof values.file_path === "string" ? values.file_path : "";
  const file = files?.find((file) => file.path === path);
  const known = befores.get(tool_call_id);
  const [, drawAgain] = useState({});
  useEffect(() => {
    if (!path) return;
    const keep = (text: string | null) => {
      befores.set(tool_call_id, { digest, text });
      drawAgain({});
    };
    if (!file) return keep(null);
    let current = true;
    const answer = store.request("read_file", { path });
    answer.then(
      ({ file: read }) => {
        if (current && read && read.content !== null && !read.truncated) keep(read.content);
      },
      () => {}, // a closed session: the call is shown without
    );
    return () => {
      current = false;
    };
  }, [path, digest, file?.modified, file?.size]);
  return known?.digest === digest ? known.text : undefined;
}
