// Images and texts that go out with the next message: pasted, dropped or picked.
import { useRef, useState } from "preact/hooks";
import { Button } from "./button";
import { bytes } from "./format";
import { Icon } from "./icons";
import type { Message } from "./protocol";
import { Line } from "./text-block";

type Attached =
  | { kind: "image"; name: string; size: number; media_type: string; data: string }
  | { kind: "text"; name: string; size: number; text: string };

const IMAGES = /^image\/(png|jpeg|gif|webp)$/;
const MOST = 8;
const LARGEST = 5_000_000;
/** A Jupyter server takes 10 MiB at once, and base64 makes a third more of an image. */
const ALTOGETHER = 7_000_000;

export function useAttachments() {
  const [items, setItems] = useState<Attached[]>([]);
  const [problem, setProblem] = useState("");
  // Files are read one after the other, and what is there by then counts.
  const now = useRef(items);
  const put = (next: Attached[]) => {
    now.current = next;
    setItems(next);
  };
  const add = async (files: File[]) => {
    setProblem("");
    for (const file of files) {
      const read = await attachedOf(file);
      const refused = typeof read === "string" ? read : refusal(now.current, read);
      if (refused) setProblem(refused);
      else put([...now.current, read as Attached]);
    }
  };
  const remove = (gone: Attached[]) => {
    setProblem("");
    put(now.current.filter((item) => !gone.includes(item)));
  };
  return { items, present: () => now.current, problem, add, remove, put };
}

/** The images of a message, to be sent once more. */
export function imagesOf({ parts = [] }: Message): Attached[] {
  return parts.flatMap((part, place): Attached[] => {
    if (part.type !== "image" || !part.data) return [];
    const { data, mime_type: media_type = "image/png" } = part;
    return [{ kind: "image", name: `Image ${place + 1}`, size: (data.length * 3) / 4, media_type, data }];
  });
}

/** What a request to send has of them. */
export function fieldsOf(items: Attached[]): { images?: object[]; files?: object[] } {
  const images = items.flatMap((item) => (item.kind === "image" ? [{ media_type: item.media_type, data: item.data }] : []));
  const files = items.flatMap((item) => (item.kind === "text" ? [{ name: item.name, text: item.text }] : []));
  return { ...(images.length > 0 && { images }), ...(files.length > 0 && { files }) };
}

function refusal(items: Attached[], { kind, name, size }: Attached): string {
  if (items.filter((item) => item.kind === kind).length >= MOST) return `A message takes ${MOST} ${kind}s at most, so ${name} is not attached.`;
  const sum = items.reduce((sum, item) => sum + item.size, size);
  return sum > ALTOGETHER ? `A message takes ${bytes(ALTOGETHER)} at most, so ${name} is not attached.` : "";
}

/** A file as it is sent, or why it is not. */
async function attachedOf(file: File): Promise<Attached | string> {
  const { name, size, type } = file;
  if (size > LARGEST) return `${name} has ${bytes(size)}; at most ${bytes(LARGEST)} can be attached.`;
  const content = await contentOf(file).catch(() => null);
  if (!content) return `${name} cannot be read; a folder cannot be attached.`;
  if (IMAGES.test(type)) return { kind: "image", name, size, media_type: type, data: base64(content) };
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(content);
    if (!text.includes("\0")) return { kind: "text", name, size, text };
  } catch {
    // Not UTF-8.
  }
  return `${name} is neither a text nor a PNG, JPEG, GIF or WebP, so it is not attached.`;
}

const contentOf = (file: File) =>
  new Promise<Uint8Array<ArrayBuffer>>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(new Uint8Array(reader.result as ArrayBuffer));
    reader.onerror = reject;
    reader.readAsArrayBuffer(file);
  });

function base64(content: Uint8Array): string {
  let text = "";
  // More arguments at once than this overflow the stack.
  for (let from = 0; from < content.length; from += 0x8000) text += String.fromCharCode(...content.subarray(from, from + 0x8000));
  return btoa(text);
}

export function Attachments({ items, remove }: { items: Attached[]; remove: (gone: Attached[]) => void }) {
  if (items.length === 0) return null;
  return (
    <ul class="sagents-attached" aria-label="Attached">
      {items.map((item, place) => (
        <li key={place} data-testid="attached" title={`${item.name}, ${bytes(item.size)}`}>
          {item.kind === "image" ? <img alt={item.name} src={`data:${item.media_type};base64,${item.data}`} /> : <Icon name="file" />}
          {item.kind === "text" && (
            <span class="sagents-attached-name">
              <Line text={item.name} />
            </span>
          )}
          <Button kind="quiet" aria-label={`Remove ${item.name}`} title="Remove" onClick={() => remove([item])}>
            <Icon name="cross" />
          </Button>
        </li>
      ))}
    </ul>
  );
}
