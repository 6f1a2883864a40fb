// Bytes that came as base64: as text, and as a file that the browser saves.

export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

export const textOf = (base64: string) => new TextDecoder().decode(bytesOf(base64));

/** Has the browser save a file. It is never opened: what it holds was written by others. */
export function save(name: string, base64: string): void {
  const url = URL.createObjectURL(new Blob([bytesOf(base64)], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  // At once, some browsers would find nothing there to be saved.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
