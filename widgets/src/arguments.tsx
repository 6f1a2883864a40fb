// The arguments of a tool call, exactly: short values as JSON, longer text as the text it is.
import { count } from "./format";
import { Line, TextBlock, Visible } from "./text-block";
import { canonicalJson, placeIn, type Numbers } from "./visible";
import type { Json, JsonObject } from "./protocol";

const SHORT = 72;

/** Arguments that stand for what goes and what comes, of the tools that change text. */
const TONES: Record<string, "added" | "removed"> = { old_string: "removed", new_string: "added" };

type Props = { tool: string; values: JsonObject; numbers?: Numbers };

export function Arguments({ tool, values, numbers = {} }: Props) {
  const json = (name: string, value: Json, indent?: number) => canonicalJson(value, indent, numbers, placeIn("", name));
  const rows = Object.keys(values)
    .sort()
    .map((name) => [name, values[name]!] as const);
  const short = rows.filter(([, value]) => isShort(value));
  const long = rows.filter(([, value]) => !isShort(value));
  // The old text reads before the new one.
  long.sort(([a], [b]) => Number(b === "old_string") - Number(a === "old_string"));
  if (rows.length === 0) return <p class="sagents-faint">No arguments</p>;
  return (
    <div class="sagents-arguments">
      {short.length > 0 && (
        <dl class="sagents-short">
          {short.map(([name, value]) => (
            <div key={name}>
              <dt>
                <Line text={name} />
              </dt>
              <dd>
                <Visible text={json(name, value, 0)} />
              </dd>
            </div>
          ))}
        </dl>
      )}
      {long.map(([name, value]) => (
        <div key={name} class="sagents-long">
          <div class="sagents-label">
            <Line text={name} />
            <span class="sagents-faint">{kind(value)}</span>
          </div>
          {typeof value === "string" ? (
            <TextBlock text={value} tone={tool === "edit_file" ? TONES[name] : undefined} />
          ) : (
            <TextBlock text={json(name, value)} />
          )}
        </div>
      ))}
    </div>
  );
}

function isShort(value: Json): boolean {
  if (typeof value === "string") return value.length <= SHORT && !value.includes("\n");
  return canonicalJson(value, 0).length <= SHORT;
}

function kind(value: Json): string {
  if (typeof value !== "string") return "JSON";
  return count(value.split("\n").length - (value.endsWith("\n") ? 1 : 0), "line");
}
