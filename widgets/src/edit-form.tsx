// Changing a call's arguments: one field for each text, JSON for the rest.
import { useState } from "preact/hooks";
import { Default } from "./arguments";
import { Button } from "./button";
import { ErrorText } from "./error-text";
import { Faint } from "./faint";
import { Line } from "./text-block";
import { canonicalJson, hasHidden, type Numbers } from "./visible";
import type { Json, JsonObject } from "./protocol";

type Props = {
  values: JsonObject;
  numbers?: Numbers;
  /** What is taken for arguments that the call leaves out. */
  defaults?: JsonObject;
  disabled: boolean;
  onSave: (edited: Edited) => void;
  onCancel: () => void;
};

/** `json` is what was written of the arguments, if it has numbers: JavaScript rounds them. */
export type Edited = { arguments: JsonObject; json?: string };

/** A field would silently lose or hide such characters; as JSON they are escapes. */
const fitsField = (value: Json): value is string => typeof value === "string" && !hasHidden(value);

export function splitArguments(values: JsonObject): { texts: Record<string, string>; rest: JsonObject } {
  const texts: Record<string, string> = {};
  const rest: JsonObject = {};
  for (const [name, value] of Object.entries(values)) {
    if (fitsField(value)) texts[name] = value;
    else rest[name] = value;
  }
  return { texts, rest };
}

/** Texts, which hold whatever they like; numbers that Python's JSON has beside those of JSON; digits of others. */
const TOKEN = /"(?:\\.|[^"\\])*"|-?\b(?:NaN|Infinity)\b|\d/g;

/** The edited arguments in the order of the original ones, or a text that says what is wrong. */
export function joinArguments(values: JsonObject, texts: Record<string, string>, json: string): Edited | string {
  let rest: Json;
  let exact = false;
  const standard = json.replace(TOKEN, (found) => {
    if (found.startsWith('"')) return found;
    exact = true;
    return /\d/.test(found) ? found : "null";
  });
  try {
    rest = JSON.parse(standard);
  } catch (error) {
    return `This is not valid JSON: ${(error as Error).message}`;
  }
  if (rest === null || typeof rest !== "object" || Array.isArray(rest)) {
    return "The arguments must be a JSON object: {…}.";
  }
  const twice = Object.keys(rest).find((name) => name in texts);
  if (twice) return `"${twice}" has a field of its own; take it out of the JSON.`;
  const edited: JsonObject = { ...texts, ...rest };
  const kept = Object.keys(values).filter((name) => name in edited);
  const order = [...kept, ...Object.keys(edited).filter((name) => !kept.includes(name))];
  const joined = Object.fromEntries(order.map((name) => [name, edited[name]!]));
  return exact ? { arguments: joined, json } : { arguments: joined };
}

export function EditForm({ values: given, numbers, defaults, disabled, onSave, onCancel }: Props) {
  const values = { ...given, ...defaults };
  const start = splitArguments(values);
  const [texts, setTexts] = useState(start.texts);
  const [json, setJson] = useState(canonicalJson(start.rest, 2, numbers));
  const [problem, setProblem] = useState("");
  const names = Object.keys(start.texts).sort((a, b) => values[a]!.toString().length - values[b]!.toString().length);
  const needsJson = Object.keys(start.rest).length > 0 || names.length === 0;

  const save = () => {
    const edited = joinArguments(values, texts, json);
    if (typeof edited === "string") setProblem(edited);
    else onSave(edited);
  };
  const onKeyDown = (event: KeyboardEvent) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && save();

  return (
    <div class="sagents-edit" onKeyDown={onKeyDown}>
      {names.map((name) => (
        <label key={name} class="sagents-field">
          <span class="sagents-label">
            <Line text={name} />
            <Default of={name} defaults={defaults} />
          </span>
          <textarea
            data-testid="edit-field"
            data-field={name}
            rows={rowsFor(texts[name]!)}
            value={texts[name]}
            disabled={disabled}
            spellcheck={false}
            onInput={(event) => setTexts({ ...texts, [name]: event.currentTarget.value })}
          />
        </label>
      ))}
      {needsJson && (
        <label class="sagents-field">
          <span class="sagents-label">
            {names.length > 0 ? "Other arguments" : "Arguments"} <Faint>JSON</Faint>
          </span>
          <textarea
            data-testid="edit-field"
            data-field="*"
            rows={rowsFor(json)}
            value={json}
            disabled={disabled}
            spellcheck={false}
            aria-invalid={problem !== ""}
            onInput={(event) => {
              setJson(event.currentTarget.value);
              setProblem("");
            }}
          />
        </label>
      )}
      <ErrorText text={problem} />
      <div class="sagents-actions">
        <Button kind="primary" data-testid="edit-save" disabled={disabled} onClick={save}>
          Approve with changes
        </Button>
        <Button kind="plain" disabled={disabled} onClick={onCancel}>
          Cancel
        </Button>
      </div>
    </div>
  );
}

const rowsFor = (text: string) => Math.min(16, Math.max(1, text.split("\n").length));
