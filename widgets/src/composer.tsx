// Where a person writes to the agent.
import { useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { BareButton, Button } from "./button";
import { ErrorText } from "./error-text";
import { Attachments, fieldsOf, imagesOf, useAttachments } from "./attachments";
import { FaintLine } from "./faint";
import { textOf, useHistory } from "./history";
import { Icon } from "./icons";
import { MemoryContext } from "./memory";
import type { Edited } from "./message-actions";
import { queuedText, type Message, type ViewState } from "./protocol";
import { Queue } from "./queue";
import { useRequest, useStore } from "./use-store";

const MAC = /^(Mac|iP)/.test(globalThis.navigator?.platform ?? "");
const STEER_KEY = MAC ? "⌘ Enter" : "Ctrl+Enter";

const HINTS: Record<string, string> = {
  running: `Enter: after this run. ${STEER_KEY}: to this run now`,
  // The kernel answers the waiting calls as cancelled.
  interrupted: "Message, sent instead of an answer",
};
const KEYS = "Enter sends, Shift and Enter make a new line, Arrow up brings earlier messages.";

type Props = {
  state: ViewState;
  /** The message that is said anew: it goes out instead of itself and of what came after it. */
  edited?: Edited | null;
  onEdited?: () => void;
  /** Is told when the kernel has taken one. */
  onSent?: () => void;
};

export function Composer({ state, edited = null, onEdited = () => {}, onSent }: Props) {
  const store = useStore();
  const { ask, busy, slow, error } = useRequest();
  const memory = useContext(MemoryContext);
  const { text, write, clear, go, recalls } = useHistory(state.entries, memory.draft);
  const { items, present, problem, add, remove, put } = useAttachments();
  const blind = useBlind(state.model, items.some((item) => item.kind === "image"));
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const brought = useRef(false);
  const now = useRef(text);
  now.current = text;
  const ready = store.open && !busy && (text.trim() !== "" || items.length > 0);
  const running = state.status === "running";

  useLayoutEffect(() => {
    const box = area.current!;
    box.style.height = "auto";
    // What is not laid out yet (a second view, a hidden tab) has no height to measure.
    if (box.scrollHeight > 0) box.style.height = `${box.scrollHeight + 2}px`;
    // The caret stands behind what the arrows brought.
    if (brought.current) box.setSelectionRange(text.length, text.length);
    brought.current = false;
  }, [text, state.status]);

  // What was being written meanwhile comes back afterwards.
  const draft = useRef<{ text: string; items: typeof items } | null>(null);
  useEffect(() => {
    if (!edited) return void (draft.current = null);
    draft.current ??= { text, items };
    clear(textOf(edited.entry.message));
    put(imagesOf(edited.entry.message));
    area.current?.focus();
  }, [edited]);
  useLayoutEffect(() => void (memory.draft = draft.current?.text ?? text), [text, edited]);
  const leaveEdit = () => {
    onEdited();
    clear(draft.current!.text);
    put(draft.current!.items);
    area.current?.focus();
  };

  const send = async (when: "queue" | "steer") => {
    if (!ready) return;
    const reply = await ask("send", { text, ...(when === "steer" && { when }), ...fieldsOf(items), ...(edited && insteadOf(edited)) });
    if (reply) onSent?.();
    if (reply && edited) return leaveEdit();
    // What was typed meanwhile is not lost, nor is what the kernel did not take.
    if (reply) remove(items);
    if (reply && now.current === text) clear();
    area.current?.focus();
  };
  /** What was taken back stands before what is being written. */
  const onBack = (message: Message) => {
    const written = draft.current ?? { text: now.current, items: present() };
    const text = [textOf(message), written.text].filter(Boolean).join("\n");
    const items = [...imagesOf(message), ...written.items];
    if (edited) {
      draft.current = { text, items };
      memory.draft = text;
      return;
    }
    write(text);
    put(items);
    area.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // While an input method composes, Enter picks a candidate.
    if (event.isComposing || event.shiftKey) return;
    const box = area.current!;
    if (event.key === "Escape" && edited) {
      event.preventDefault();
      leaveEdit();
    } else if (event.key === "Enter") {
      event.preventDefault();
      void send(running && (event.ctrlKey || event.metaKey) ? "steer" : "queue");
    } else if (!event.ctrlKey && !event.metaKey && !event.altKey) {
      const step = event.key === "ArrowUp" && onFirstLine(box, recalls()) ? -1 : event.key === "ArrowDown" && recalls() && onLastLine(box) ? 1 : 0;
      if (step === 0 || !go(step)) return;
      event.preventDefault();
      brought.current = true;
    }
  };

  const take = (event: Event, data: DataTransfer | null) => {
    const files = [...(data?.files ?? [])];
    if (files.length === 0 || !store.open) return;
    event.preventDefault();
    // Else the notebook takes what is dropped.
    event.stopPropagation();
    void add(files);
  };

  return (
    <div
      class="sagents-composer"
      data-testid="composer-frame"
      onDragOver={(event) => event.dataTransfer?.types.includes("Files") && event.preventDefault()}
      onDrop={(event) => take(event, event.dataTransfer)}
    >
      <Queue queued={state.queued} active={running} onBack={onBack} />
      {edited && (
        <p class="sagents-editing" data-testid="editing">
          <span>Said instead of the marked message: it and all after it are kept as another branch. To-dos and files stay as they are.</span>
          <Button kind="quiet" data-testid="leave-edit" onClick={leaveEdit}>
            Cancel
          </Button>
        </p>
      )}
      <Attachments items={items} remove={remove} />
      <div class="sagents-composer-box">
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          data-testid="picker"
          onChange={(event) => {
            void add([...(event.currentTarget.files ?? [])]);
            event.currentTarget.value = "";
          }}
        />
        <Button
          kind="quiet"
          class="sagents-attach"
          data-testid="attach"
          aria-label="Attach images or text files"
          title="Attach images or text files (or paste and drop them)"
          disabled={!store.open}
          onClick={() => picker.current!.click()}
        >
          <Icon name="clip" />
        </Button>
        <textarea
          ref={area}
          data-testid="composer"
          rows={1}
          value={text}
          disabled={!store.open}
          placeholder={store.open ? (HINTS[state.status] ?? "Message") : "Closed"}
          aria-label={`Message to the agent. ${running ? `${HINTS.running}. ` : ""}${KEYS}`}
          onInput={(event) => write(event.currentTarget.value)}
          onKeyDown={onKeyDown}
          onPaste={(event) => take(event, event.clipboardData)}
        />
        {running && (
          <Button
            kind="plain"
            class="sagents-steer"
            data-testid="steer"
            title={`Tell the active run now, before its next step (${STEER_KEY})`}
            disabled={!ready}
            onClick={() => send("steer")}
          >
            Steer
          </Button>
        )}
        <BareButton
          class="sagents-send"
          data-testid="send"
          aria-label={running ? "Send when this run is over" : "Send"}
          title={running ? "Send when this run is over (Enter)" : "Send (Enter)"}
          disabled={!ready}
          onClick={() => send("queue")}
        >
          <Icon name="send" />
        </BareButton>
      </div>
      {blind && (
        <FaintLine role="status" data-testid="blind">
          {state.model} may not see images: if its answer misses what is in them, choose another model.
        </FaintLine>
      )}
      <ErrorText text={error || problem} />
      {slow && !store.silent && <FaintLine>The {store.transport.host} is busy; the message goes out later.</FaintLine>}
    </div>
  );
}

/** By what the kernel knows which message is meant. */
const insteadOf = ({ entry, later }: Edited) => ({ instead: queuedText(entry.message), later });

/** Whether there are images for a model that is not known to read any. */
function useBlind(model: string, images: boolean): boolean {
  const store = useStore();
  const [blind, setBlind] = useState(false);
  useEffect(() => {
    setBlind(false);
    if (!images || !store.open) return;
    let current = true;
    store.request("models").then(
      (reply) => current && setBlind(reply.reads_images === false),
      () => {}, // sending says what is wrong
    );
    return () => {
      current = false;
    };
  }, [model, images]);
  return blind;
}

/** Whether Arrow up has nowhere to go in the text; a draft whose lines are broken is left to the caret. */
function onFirstLine(box: HTMLTextAreaElement, recalled: boolean): boolean {
  const { value, selectionStart, selectionEnd } = box;
  if (selectionStart !== selectionEnd || value.slice(0, selectionStart).includes("\n")) return false;
  if (recalled || selectionStart === 0) return true;
  const style = getComputedStyle(box);
  const padding = parseFloat(style.paddingTop) + parseFloat(style.paddingBottom);
  const lines = (box.scrollHeight - padding) / parseFloat(style.lineHeight);
  return !(lines > value.split("\n").length + 0.5);
}

const onLastLine = ({ value, selectionStart, selectionEnd }: HTMLTextAreaElement): boolean =>
  selectionStart === selectionEnd && !value.slice(selectionEnd).includes("\n");
