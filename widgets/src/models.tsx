// Which model answers, and the list of those that could.
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button";
import { ErrorText } from "./error-text";
import { Faint, FaintLine } from "./faint";
import { Icon } from "./icons";
import type { ModelChoice } from "./protocol";
import { useRequest, useStore } from "./use-store";

type Props = { model: string; open: boolean; toggle: () => void; button: { current: HTMLButtonElement | null } };

/** The model's name, which opens the list. */
export function ModelButton({ model, open, toggle, button }: Props) {
  const store = useStore();
  if (!store.open) {
    return (
      <span class="sagents-model" title={`Model: ${model}`}>
        {model}
      </span>
    );
  }
  return (
    <Button
      ref={button}
      kind="quiet"
      class="sagents-model"
      data-testid="model"
      aria-expanded={open}
      aria-label={`Model: ${model}`}
      title={`Model: ${model}. Choose another.`}
      onClick={toggle}
    >
      <span class="sagents-model-name">{model}</span>
      <Icon name="chevron" />
    </Button>
  );
}

/** What can be chosen. It stands below the header, since a panel in a cell has no room to float over. */
export function ModelList({ close }: { close: () => void }) {
  const { ask, busy, slow, error } = useRequest();
  const [choices, setChoices] = useState<ModelChoice[] | null>(null);
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    void ask("models").then((reply) => setChoices(reply?.models ?? null));
  }, []);
  useEffect(() => {
    list.current?.querySelector<HTMLElement>('[aria-pressed="true"]')?.focus({ preventScroll: true });
  }, [choices]);
  const choose = async ({ name, current }: ModelChoice) => {
    if (current || (await ask("model", { name }))) close();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key !== "Escape" && !step) return;
    event.preventDefault();
    if (!step) return close();
    const buttons = [...(list.current?.querySelectorAll("button") ?? [])];
    const place = buttons.findIndex((button) => button === event.target);
    buttons.at((place + step) % buttons.length)?.focus();
  };
  return (
    <section class="sagents-models" aria-label="Models" data-testid="models" onKeyDown={onKeyDown}>
      {!choices && !error && <FaintLine>{slow ? "The kernel is busy." : "Looking…"}</FaintLine>}
      <ul ref={list}>
        {choices?.map((choice) => (
          <li key={choice.name}>
            <Button
              kind="plain"
              class="sagents-choice"
              data-testid="model-choice"
              aria-pressed={choice.current}
              disabled={busy}
              onClick={() => choose(choice)}
            >
              {choice.current && <Icon name="check" />}
              <span class="sagents-choice-name">{choice.label}</span>
              {choice.name === "" && <Faint>this session's own</Faint>}
              {choice.missing && <Faint>{choice.missing} is not set</Faint>}
            </Button>
          </li>
        ))}
      </ul>
      <ErrorText text={error} />
    </section>
  );
}
