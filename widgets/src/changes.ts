// What calls of the file tools do to a file, as far as the page can know it.
import type { JsonObject } from "./protocol";

export type Change = {
  path: string;
  /** Which lines, or what becomes of the file. */
  note: string;
  /** The text that goes; null where it is not known, or there was none. */
  from: string | null;
  to: string;
  /** The arguments that this says. */
  said: string[];
};

/** What the call changes; `before` is the file as it was, null if there was none. */
export function changeOf(tool: string, values: JsonObject, before?: string | null): Change | null {
  const { file_path: path, old_string, new_string, new_content, content, start_line, end_line } = values;
  if (typeof path !== "string") return null;
  if (tool === "edit_file" && typeof old_string === "string" && typeof new_string === "string") {
    const note = values.replace_all === true ? "every occurrence" : "";
    return { path, note, from: old_string, to: new_string, said: ["file_path", "old_string", "new_string", ...flag(values, "replace_all")] };
  }
  if (tool === "edit_lines" && typeof new_content === "string" && isLine(start_line) && isLine(end_line)) {
    const from = before?.split("\n").slice(start_line - 1, end_line).join("\n") ?? null;
    const note = start_line === end_line ? `line ${start_line}` : `lines ${start_line} to ${end_line}`;
    return { path, note, from, to: new_content.replace(/\n$/, ""), said: ["file_path", "start_line", "end_line", "new_content"] };
  }
  if (tool === "write_file" && typeof content === "string") {
    const said = ["file_path", "content", ...flag(values, "overwrite")];
    const replaces = values.overwrite === true;
    const note = before === null ? "new file" : replaces ? "replaces the file" : "";
    return { path, note, from: before != null && replaces ? before : null, to: content, said };
  }
  return null;
}

/** A yes or no, which the note says. */
const flag = (values: JsonObject, name: string) => (typeof values[name] === "boolean" ? [name] : []);

const isLine = (value: unknown): value is number => typeof value === "number" && Number.isInteger(value) && value > 0;

/** Whether its arguments alone do not say what the file was. */
export const needsBefore = (tool: string) => tool === "write_file" || tool === "edit_lines";
