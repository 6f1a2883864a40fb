// The last message of a person can be said anew: what came after it is dropped then.
import { Icon } from "./icons";
import type { Entry, Part, ViewState } from "./protocol";
import { useStore } from "./use-store";

/** The last message of a person, if it can be edited: all of it is here, and nothing runs or waits. */
export function editable({ status, entries }: ViewState): Entry | null {
  if (["running", "interrupted", "paused", "closed"].includes(status)) return null;
  const last = entries.findLast(({ message }) => message.role === "user");
  const whole = (part: Part) => part.type === "text" || (part.type === "image" && !!part.data);
  return last?.message.parts?.every(whole) ? last : null;
}

export function EditButton({ onEdit }: { onEdit: () => void }) {
  const store = useStore();
  if (!store.open) return null;
  return (
    <button
      type="button"
      class="sagents-button sagents-quiet sagents-edit-last"
      data-testid="edit-last"
      aria-label="Edit your last message"
      title="Edit this message, and go on from before it"
      onClick={onEdit}
    >
      <Icon name="pencil" />
      Edit
    </button>
  );
}
