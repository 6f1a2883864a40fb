// Several reads in a row, as one line that opens.
import { count } from "./format";
import { Icon } from "./icons";
import { isCall } from "./calls";
import { MemoryContext, useFold } from "./memory";
import type { ComponentChildren } from "preact";
import { useContext, useMemo } from "preact/hooks";
import type { Member } from "./rows";

type Props = { members: Member[]; places: string[]; place: string; children: ComponentChildren };

export function ReadsFold({ members, places, place, children }: Props) {
  const { folds } = useContext(MemoryContext);
  // Who has opened one of them before the others came goes on seeing it.
  const opened = useMemo(() => places.some((place) => folds.get(place)), []);
  const [open, fold] = useFold(`${place}.reads`, opened);
  return (
    <details class="sagents-reads sagents-fold" data-testid="reads" {...fold}>
      <summary>
        <Icon name="chevron" />
        <span>{headline(members)}</span>
      </summary>
      {open && <div class="sagents-reads-body">{children}</div>}
    </details>
  );
}

/** Read 3 files, listed files, searched 2 times. */
function headline(members: Member[]): string {
  const calls = members.map(({ part }) => part).filter(isCall);
  const of = (...names: string[]) => calls.filter((call) => names.includes(call.name));
  const reads = of("read_file");
  const files = new Set(reads.map((call) => String(call.arguments?.file_path))).size;
  const lists = of("ls", "glob").length;
  const searches = calls.length - reads.length - lists;
  const said = [
    reads.length > 0 && `read ${count(files, "file")}`,
    lists > 0 && (lists > 1 ? `listed files ${lists} times` : "listed files"),
    searches > 0 && (searches > 1 ? `searched ${searches} times` : "searched"),
  ].filter(Boolean) as string[];
  const text = said.join(", ");
  return text[0]!.toUpperCase() + text.slice(1);
}
