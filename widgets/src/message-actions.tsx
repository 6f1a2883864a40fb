// What a person can do with a message of theirs: say it anew, and switch between the ways in which it was said.
import { ErrorText } from "./error-text";
import { Icon } from "./icons";
import type { Entry, Part, ViewState } from "./protocol";
import { useRequest, useStore } from "./use-store";

/** A message that is being said anew, and how many messages of the person came after it. */
export type Edited = { entry: Entry; later: number };

/** The messages that can be edited now: all of them is here, and nothing runs or waits. */
export function editable({ status, entries }: ViewState): Map<Entry, number> {
  const found = new Map<Entry, number>();
  if (["running", "interrupted", "paused", "closed"].includes(status)) return found;
  const whole = (part: Part) => part.type === "text" || (part.type === "image" && !!part.data);
  const asked = entries.filter(({ message }) => message.role === "user");
  asked.forEach((entry, index) => {
    if (entry.message.parts?.every(whole)) found.set(entry, asked.length - 1 - index);
  });
  return found;
}

type Props = {
  state: ViewState;
  entry: Entry;
  /** How many messages of the person came after it, if it can be edited. */
  later?: number;
  onEdit: (edited: Edited) => void;
};

export function MessageActions({ state, entry, later, onEdit }: Props) {
  const store = useStore();
  const id = entry.message.metadata?.branch;
  const branches = typeof id === "string" ? state.branches[id] : undefined;
  if (!store.open || (later === undefined && !branches)) return null;
  return (
    <div class={later === 0 || branches ? "sagents-message-actions" : "sagents-message-actions sagents-on-approach"}>
      {branches && branches.count > 1 && <Switch id={id as string} {...branches} disabled={later === undefined} />}
      {later !== undefined && (
        <button
          type="button"
          class="sagents-button sagents-quiet"
          data-testid="edit"
          aria-label={later === 0 ? "Edit your last message" : "Edit this message"}
          title="Edit this message, and go on from before it; what followed is kept as another branch"
          onClick={() => onEdit({ entry, later })}
        >
          <Icon name="pencil" />
          Edit
        </button>
      )}
    </div>
  );
}

type SwitchProps = { id: string; current: number; count: number; disabled: boolean };

function Switch({ id, current, count, disabled }: SwitchProps) {
  const { ask, busy, error } = useRequest();
  const step = (by: number, name: string, icon: "earlier" | "chevron") => (
    <button
      type="button"
      class="sagents-button sagents-quiet sagents-step"
      aria-label={`${name} branch`}
      title={`${name} branch of the conversation`}
      disabled={disabled || busy || current + by < 0 || current + by >= count}
      onClick={() => ask("switch", { branch: id, to: current + by })}
    >
      <Icon name={icon} />
    </button>
  );
  return (
    <span class="sagents-branches" role="group" aria-label="Branches" data-testid="branches">
      {step(-1, "Earlier", "earlier")}
      <span class="sagents-faint" aria-live="polite">
        {current + 1} / {count}
      </span>
      {step(1, "Later", "chevron")}
      <ErrorText text={error} />
    </span>
  );
}
