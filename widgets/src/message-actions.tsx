// What a person can do with a message of theirs: say it anew, switch between the ways in which it was
// said, and go on from it in a conversation of its own.
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button";
import { ErrorText } from "./error-text";
import { Faint } from "./faint";
import { Icon } from "./icons";
import { queuedText, type Entry, type Part, type ViewState } from "./protocol";
import { goesOn } from "./status";
import { useRequest, useStore } from "./use-store";

/** A message that is being said anew, and how many messages of the person came after it. */
export type Edited = { entry: Entry; later: number };

/** How many messages of the person came after one, and whether all of it is here to be edited. */
export type Place = { later: number; whole: boolean };

/** The places of the person's messages, when nothing runs or waits: then something can be done with each. */
export function placesOf({ status, entries }: ViewState): Map<Entry, Place> {
  if (goesOn(status)) return new Map();
  const whole = (part: Part) => part.type === "text" || (part.type === "image" && !!part.data);
  const asked = entries.filter(({ message }) => message.role === "user");
  return new Map(
    asked.map((entry, index) => [entry, { later: asked.length - 1 - index, whole: !!entry.message.parts?.every(whole) }]),
  );
}

type Props = {
  state: ViewState;
  entry: Entry;
  /** Where it stands, if something can be done with it. */
  place?: Place;
  /** Whether it is being said anew. */
  edited: boolean;
  onEdit: (edited: Edited) => void;
};

export function MessageActions({ state, entry, place, edited, onEdit }: Props) {
  const store = useStore();
  const id = entry.message.metadata?.branch;
  const branches = typeof id === "string" ? state.branches[id] : undefined;
  const [code, setCode] = useState("");
  const [below, setBelow] = useState(false);
  const runs = goesOn(state.status);
  // What is said of a fork is of this moment: the conversation goes on here.
  useEffect(() => {
    if (runs) setCode("");
  }, [runs]);
  if (!store.open || (!place && !branches)) return null;
  const isLast = place?.later === 0;
  const forked = (code: string, below: boolean) => {
    setCode(code);
    setBelow(below);
  };
  return (
    <>
      <div class={isLast || branches ? "sagents-message-actions" : "sagents-message-actions sagents-on-approach"}>
        {branches && branches.count > 1 && <Switch id={id as string} {...branches} disabled={!place} />}
        {place && store.transport.host === "kernel" && <Fork entry={entry} later={place.later} onDone={forked} />}
        {place?.whole && (
          <Button
            kind="quiet"
            data-testid="edit"
            aria-current={edited || undefined}
            aria-label={isLast ? "Edit your last message" : "Edit this message"}
            title="Edit this message, and go on from before it; what followed is kept as another branch"
            onClick={() => onEdit({ entry, later: place.later })}
          >
            <Icon name="pencil" />
            Edit
          </Button>
        )}
      </div>
      {code && (
        <p class="sagents-forked" role="status" data-testid="forked">
          Forked. {below ? "The new cell below opens the fork: " : "In a cell this opens the fork: "}
          <code>{code}</code>
        </p>
      )}
    </>
  );
}

type ForkProps = { entry: Entry; later: number; onDone: (code: string, below: boolean) => void };

/** Has the kernel go on from there in a conversation of its own, and offers the cell that opens it. */
function Fork({ entry, later, onDone }: ForkProps) {
  const store = useStore();
  const { ask, busy, error } = useRequest();
  const button = useRef<HTMLButtonElement>(null);
  const fork = async () => {
    const reply = await ask("fork", { text: queuedText(entry.message), later });
    if (reply?.code) onDone(reply.code, !!button.current && store.transport.insertCell(button.current, reply.code));
  };
  return (
    <>
      <ErrorText text={error} />
      <Button
        ref={button}
        kind="quiet"
        data-testid="fork"
        aria-label={later === 0 ? "Fork the conversation" : "Fork from here"}
        title="Go on from the answer to this message in a conversation of its own; this one stays as it is"
        disabled={busy}
        onClick={fork}
      >
        <Icon name="fork" />
        Fork
      </Button>
    </>
  );
}

type SwitchProps = { id: string; current: number; count: number; disabled: boolean };

function Switch({ id, current, count, disabled }: SwitchProps) {
  const { ask, busy, error } = useRequest();
  const step = (by: number, name: string, icon: "earlier" | "chevron") => (
    <Button
      kind="quiet"
      class="sagents-step"
      aria-label={`${name} branch`}
      title={`${name} branch of the conversation`}
      disabled={disabled || busy || current + by < 0 || current + by >= count}
      onClick={() => ask("switch", { branch: id, to: current + by })}
    >
      <Icon name={icon} />
    </Button>
  );
  return (
    <span class="sagents-branches" role="group" aria-label="Branches" data-testid="branches">
      {step(-1, "Earlier", "earlier")}
      <Faint aria-live="polite">
        {current + 1} / {count}
      </Faint>
      {step(1, "Later", "chevron")}
      <ErrorText text={error} />
    </span>
  );
}
