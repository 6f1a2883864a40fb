// The arguments of a tool call, exactly: edits as what goes and comes, code in its colours, short
// values beside their names, and longer ones as the text they are.
import { changeOf, type Change } from "./changes";
import { Diff } from "./diff";
import { Faint, FaintLine } from "./faint";
import { count, oneLine } from "./format";
import { isLanguage, languageOf } from "./languages";
import { Line, TextBlock, Visible } from "./text-block";
import { exactJson, placeIn, type Numbers } from "./visible";
import type { Json, JsonObject } from "./protocol";

const SHORT = 72;

type Props = {
  tool: string;
  values: JsonObject;
  numbers?: Numbers;
  /** What is taken for arguments that the call leaves out. */
  defaults?: JsonObject;
  /** The file that the call changes as it was before; null if there was none. */
  before?: string | null;
};

export function Arguments({ tool, values: given, numbers = {}, defaults, before }: Props) {
  const values = { ...given, ...defaults };
  const change = changeOf(tool, values, before);
  const json = (name: string, value: Json, indent?: number) => exactJson(value, indent, numbers, placeIn("", name));
  const rows = Object.entries(values).filter(([name]) => !change?.said.includes(name));
  if (rows.length === 0 && !change) return <FaintLine>No arguments</FaintLine>;
  // What stands beside its name comes first, so that all of it is seen before the long.
  const short = rows.filter(([name, value]) => isShort(value) && !codeOf(name, value, values));
  const long = rows.filter((row) => !short.includes(row));
  return (
    <div class="sagents-arguments">
      {change && <ChangeView change={change} tone={tool === "write_file" ? undefined : "added"} />}
      {short.length > 0 && (
        <div class="sagents-form">
          {short.map(([name, value]) => (
            <div key={name} class="sagents-form-row">
              <span class="sagents-form-name">
                <Line text={name} />
              </span>{" "}
              <span class="sagents-form-value">
                <Visible text={typeof value === "string" && isPlainText(value) ? value : json(name, value, 0)} />
                <Default of={name} defaults={defaults} />
              </span>
            </div>
          ))}
        </div>
      )}
      {long.map(([name, value]) => (
        <div key={name} class="sagents-long">
          <div class="sagents-label">
            <Line text={name} />
            <Faint>{kind(name, value, values)}</Faint>
            <Default of={name} defaults={defaults} />
          </div>
          {typeof value === "string" ? (
            <TextBlock text={value} language={codeOf(name, value, values)} />
          ) : (
            <TextBlock text={json(name, value)} />
          )}
        </div>
      ))}
    </div>
  );
}

/** Marks an argument that the call leaves out. */
export const Default = ({ of: name, defaults = {} }: { of: string; defaults?: JsonObject }) =>
  Object.hasOwn(defaults, name) ? <Faint> default</Faint> : null;

function ChangeView({ change: { path, note, from, to }, tone }: { change: Change; tone?: "added" }) {
  return (
    <div class="sagents-long">
      <div class="sagents-label">
        <span class="sagents-path">
          <Line text={path} />
        </span>
        <Faint>{note}</Faint>
      </div>
      {from === null ? <TextBlock text={to} language={languageOf(path)} tone={tone} /> : <Diff from={from} to={to} />}
    </div>
  );
}

/** The arguments in a line: the values say more than their names. */
export function summaryOf({ arguments: values = {}, numbers }: { arguments?: JsonObject; numbers?: Numbers }): string {
  const shown = Object.entries(values).map(([name, value]) =>
    typeof value === "string"
      ? value
      : Array.isArray(value) && value.some((item) => item && typeof item === "object")
        ? count(value.length, "item")
        : exactJson(value, 0, numbers, placeIn("", name)),
  );
  return oneLine(shown.join(" · "), 120);
}

const SQL = /^\s*(?:select|with|insert|update|delete|create|drop|alter|explain|pragma|merge|show|describe)\b/i;

/** The language of an argument that is code; "" for any other. */
export function codeOf(name: string, value: Json, values: JsonObject): string {
  if (typeof value !== "string" || !value.trim()) return "";
  switch (name) {
    case "code":
      return typeof values.language === "string" && isLanguage(values.language) ? values.language : "python";
    case "sql":
      return "sql";
    case "query":
      return SQL.test(value) ? "sql" : "";
    case "command":
      return "bash";
    case "content":
      return typeof values.file_path === "string" ? languageOf(values.file_path) : "";
    default:
      return "";
  }
}

function isShort(value: Json): boolean {
  if (typeof value === "string") return value.length <= SHORT && !value.includes("\n");
  return exactJson(value, 0).length <= SHORT;
}

/** Whether a text can stand without quotes: it has no edges to be missed, and reads as nothing else. */
function isPlainText(text: string): boolean {
  if (text === "" || text !== text.trim() || /^-?(?:NaN|Infinity)$/.test(text)) return false;
  try {
    JSON.parse(text);
    return false;
  } catch {
    return true;
  }
}

function kind(name: string, value: Json, values: JsonObject): string {
  if (typeof value !== "string") return "JSON";
  const lines = count(value.split("\n").length - (value.endsWith("\n") ? 1 : 0), "line");
  const language = codeOf(name, value, values);
  return language ? `${language}, ${lines}` : lines;
}
