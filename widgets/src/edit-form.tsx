// Changing a call's arguments: a field for each text, number, yes or no and choice, JSON for the rest.
import { Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Default } from "./arguments";
import { Button } from "./button";
import { ErrorText } from "./error-text";
import { Faint } from "./faint";
import { Line } from "./text-block";
import { exactJson, hasHidden, placeIn, spelledOut, type Numbers } from "./visible";
import type { Json, JsonObject, Parameter } from "./protocol";

type Props = {
  values: JsonObject;
  numbers?: Numbers;
  /** What is taken for arguments that the call leaves out. */
  defaults?: JsonObject;
  parameters?: Record<string, Parameter>;
  disabled: boolean;
  /** What was typed before the form was left, if it was. */
  draft: Draft | null;
  onDraft: (draft: Draft) => void;
  onSave: (edited: Edited) => void;
  onCancel: () => void;
};

/** What is in the fields: of numbers and the like JSON, texts, and the JSON of the rest. */
export type Draft = { kinds: Record<string, string>; texts: Record<string, string>; json: string };

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

const WHOLE = /^-?(?:0|[1-9]\d*)$/;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i;

/** The arguments that have a field of a kind, as JSON: of what is not as its tool says, there is none. */
function kindsOf(values: JsonObject, parameters: Record<string, Parameter>, numbers?: Numbers): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(values)) {
    const { type, enum: choices } = (Object.hasOwn(parameters, name) && parameters[name]) || {};
    const json = exactJson(value, 0, numbers, placeIn("", name));
    const fits = choices
      ? choices.some((choice) => exactJson(choice, 0) === json)
      : type === "boolean"
        ? typeof value === "boolean"
        : type && (type === "integer" ? WHOLE : NUMBER).test(json);
    if (fits) found[name] = json;
  }
  return found;
}

/** What is wrong with what was typed as a number, "" if nothing is. */
function wrongNumber(name: string, { type }: Parameter, text: string): string {
  if (type === "integer") return WHOLE.test(text) ? "" : `"${name}" is a whole number, such as 3.`;
  return type !== "number" || NUMBER.test(text) ? "" : `"${name}" is a number, such as 2.5.`;
}

/** The edited arguments in the order of the original ones, or a text that says what is wrong. `kinds` are JSON. */
export function joinArguments(values: JsonObject, texts: Record<string, string>, json: string, kinds: Record<string, string> = {}): Edited | string {
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
  const twice = Object.keys(rest).find((name) => Object.hasOwn(texts, name) || Object.hasOwn(kinds, name));
  if (twice) return `"${twice}" has a field of its own; take it out of the JSON.`;
  const own = Object.entries(kinds).map(([name, text]) => `${JSON.stringify(name)}:${text}`);
  const edited: JsonObject = { ...texts, ...JSON.parse(`{${own}}`), ...rest };
  const kept = Object.keys(values).filter((name) => name in edited);
  const order = [...kept, ...Object.keys(edited).filter((name) => !kept.includes(name))];
  const joined = Object.fromEntries(order.map((name) => [name, edited[name]!]));
  if (own.length > 0) {
    exact ||= /\d/.test(own.join());
    json = `{${[...own, json.trim().slice(1, -1).trim()].filter(Boolean)}}`;
  }
  return exact ? { arguments: joined, json } : { arguments: joined };
}

export function EditForm({ values: given, numbers, defaults, parameters = {}, disabled, draft, onDraft, onSave, onCancel }: Props) {
  const values = { ...given, ...defaults };
  const [{ rest, ...start }] = useState(() => {
    const kinds = kindsOf(values, parameters, numbers);
    const { texts, rest } = splitArguments(Object.fromEntries(Object.entries(values).filter(([name]) => !Object.hasOwn(kinds, name))));
    return { kinds, texts, rest, json: exactJson(rest, 2, numbers) };
  });
  const { kinds, texts, json } = draft ?? start;
  const change = (changed: Partial<Draft>) => onDraft({ kinds, texts, json, ...changed });
  // Of which field, and what.
  const [[wrong, problem], setProblem] = useState(["", ""]);
  const names = [...new Set([...Object.keys(parameters), ...Object.keys(values)])];
  const needsJson = Object.keys(rest).length > 0 || Object.keys(values).length === 0;

  const set = (name: string, text: string) => {
    change({ kinds: { ...kinds, [name]: text } });
    setProblem(["", ""]);
  };
  const save = () => {
    for (const [name, text] of Object.entries(kinds)) {
      const problem = wrongNumber(name, parameters[name]!, text);
      if (problem) return setProblem([name, problem]);
    }
    const edited = joinArguments(values, texts, json, kinds);
    if (typeof edited === "string") setProblem(["*", edited]);
    else onSave(edited);
  };
  const onKeyDown = (event: KeyboardEvent) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && save();
  const field = (name: string) => ({ "data-testid": "edit-field", "data-field": name, disabled, "aria-invalid": problem !== "" && wrong === name });
  // Where it is seen: the buttons lie over the end of a long form.
  const below = (name: string) => <ErrorText text={wrong === name ? problem : ""} />;
  const form = useRef<HTMLDivElement>(null);
  useEffect(() => form.current!.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus(), [wrong, problem]);
  const label = (name: string) => (
    <>
      <Line text={name} />
      <Default of={name} defaults={defaults} />
    </>
  );

  return (
    <div class="sagents-edit" onKeyDown={onKeyDown} ref={form}>
      {names.map((name) => {
        if (Object.hasOwn(texts, name)) {
          return (
            <label key={name} class="sagents-field">
              <span class="sagents-label">{label(name)}</span>
              <textarea
                {...field(name)}
                rows={rowsFor(texts[name]!)}
                value={texts[name]}
                spellcheck={false}
                onInput={(event) => change({ texts: { ...texts, [name]: event.currentTarget.value } })}
              />
            </label>
          );
        }
        if (!Object.hasOwn(kinds, name)) return null;
        const text = kinds[name]!;
        const { type, enum: choices } = parameters[name]!;
        if (type === "boolean") {
          return (
            <label key={name} class="sagents-label">
              <input {...field(name)} type="checkbox" checked={text === "true"} onChange={(event) => set(name, `${event.currentTarget.checked}`)} /> {label(name)}
            </label>
          );
        }
        return (
          <Fragment key={name}>
            <label class="sagents-field">
              <span class="sagents-label">{label(name)}</span>
              {choices ? (
                <select {...field(name)} value={text} onChange={(event) => set(name, event.currentTarget.value)}>
                  {choices.map((choice) => (
                    <option key={choice} value={exactJson(choice, 0)}>
                      {typeof choice === "string" ? spelledOut(choice) : `${choice}`}
                    </option>
                  ))}
                </select>
              ) : (
                <input
                  {...field(name)}
                  type="number"
                  step={type === "integer" ? 1 : "any"}
                  value={text}
                  onInput={(event) => set(name, event.currentTarget.value)}
                />
              )}
            </label>
            {below(name)}
          </Fragment>
        );
      })}
      {needsJson && (
        <label class="sagents-field">
          <span class="sagents-label">
            {Object.keys(rest).length < Object.keys(values).length ? "Other arguments" : "Arguments"} <Faint>JSON</Faint>
          </span>
          <textarea
            {...field("*")}
            rows={rowsFor(json)}
            value={json}
            spellcheck={false}
            onInput={(event) => {
              change({ json: event.currentTarget.value });
              setProblem(["", ""]);
            }}
          />
        </label>
      )}
      {below("*")}
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
