// Answering a question of the agent: by one of its options, or in words.
import { useState } from "preact/hooks";
import { Button } from "./button";
import { LineForm } from "./line-form";
import { Line } from "./text-block";
import type { Json, JsonObject } from "./protocol";

type Props = {
  options: Option[];
  values: JsonObject;
  disabled: boolean;
  text: string;
  onText: (text: string) => void;
  onAnswer: (answer: Json) => void;
};
export type Option = { label: string; value: Json; hint?: string };

/** After a crash nobody but a person can know what became of a call. */
const IN_DOUBT: Option[] = [
  { label: "It ran", value: "ran", hint: "The agent is told that it ran and that its result is lost" },
  { label: "It did not run", value: "did not run", hint: "The agent is told so and decides what to do" },
  { label: "Run it again", value: "retry", hint: "The call above is run once more" },
];

/** The options a question offers: texts, or objects with a label and a value. */
export function optionsOf(kind: string, values: JsonObject): Option[] {
  if (kind === "in_doubt") return IN_DOUBT;
  const given = Array.isArray(values.options) ? values.options : [];
  return given.flatMap((option): Option[] => {
    if (typeof option === "string") return [{ label: option, value: option }];
    if (option === null || typeof option !== "object" || Array.isArray(option)) return [];
    const value = option.value ?? option.label;
    return value === undefined ? [] : [{ label: String(option.label ?? value), value }];
  });
}

export function RespondForm({ options, values, disabled, text, onText, onAnswer }: Props) {
  const [picked, setPicked] = useState<Json[]>([]);
  const several = values.response_type === "multi_select";
  const toggle = (value: Json) =>
    setPicked(picked.includes(value) ? picked.filter((other) => other !== value) : [...picked, value]);
  const answer = () => onAnswer(several ? [...picked, ...(text.trim() ? [text] : [])] : text);
  return (
    <div class="sagents-respond">
      {options.length > 0 && (
        <div class="sagents-actions">
          {options.map(({ label, value, hint }) => (
            <Button
              key={label}
              data-testid="answer-option"
              title={hint}
              aria-pressed={several ? picked.includes(value) : undefined}
              disabled={disabled}
              onClick={() => (several ? toggle(value) : onAnswer(value))}
            >
              <Line text={label} />
            </Button>
          ))}
        </div>
      )}
      {(options.length === 0 || several || values.allow_other === true) && (
        <LineForm id="answer" label="Your answer" verb="Answer" kind="primary" disabled={disabled} text={text} onText={onText} onSend={answer} />
      )}
    </div>
  );
}
