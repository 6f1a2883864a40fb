// What goes out with a message beside its text, and what does not.
import { expect, test, vi } from "vitest";
import { emptyState } from "../dev/scenes";
import { click, el, find, model, one, press, sent, settle, show, type } from "./page";

const image = (name = "plot.png", size = 3) => new File([new Uint8Array(size).fill(65)], name, { type: "image/png" });
const text = (name: string, content: BlobPart = "a,b\n") => new File([content], name);

async function give(how: "paste" | "drop", ...files: File[]): Promise<void> {
  const event = new Event(how, { bubbles: true, cancelable: true });
  Object.assign(event, how === "paste" ? { clipboardData: { files } } : { dataTransfer: { files } });
  one("composer").dispatchEvent(event);
  await settle();
}

test("what is pasted, dropped or picked is shown, and goes out with the message", async () => {
  await show(emptyState());
  await give("paste", image());
  await give("drop", text("data.csv"));
  const picker = one("picker") as HTMLInputElement;
  Object.defineProperty(picker, "files", { value: [image("photo.png")], configurable: true });
  picker.dispatchEvent(new Event("change"));
  await settle();
  expect(find("attached").map((item) => item.title)).toEqual(["plot.png, 3 B", "data.csv, 4 B", "photo.png, 3 B"]);
  await type(one("composer"), "Look");
  await press(one("composer"), "Enter");
  const png = { media_type: "image/png", data: "QUFB" };
  expect(sent("send")).toMatchObject([{ text: "Look", images: [png, png], files: [{ name: "data.csv", text: "a,b\n" }] }]);
  expect(find("attached")).toEqual([]);
});

test("an image alone can be sent, and one that was removed is not", async () => {
  await show(emptyState());
  await give("paste", image("a.png"), image("b.png"));
  el.querySelector<HTMLElement>('[aria-label="Remove a.png"]')!.click();
  await settle();
  await click("send");
  expect((sent("send")[0]!.images as object[]).length).toBe(1);
});

test("what the kernel refuses stays attached", async () => {
  await show(emptyState());
  await give("paste", image());
  model.answer = (message) => model.receive({ type: "error", id: message.id!, kind: "Busy", message: "Not now." });
  await click("send");
  expect(find("attached")).toHaveLength(1);
  expect(el.textContent).toContain("Not now.");
});

test.each([
  ["a binary file", [text("a.bin", new Uint8Array([255, 0, 1]))], "a.bin is neither a text nor"],
  ["a drawing", [new File([new Uint8Array([0, 255])], "a.tiff", { type: "image/tiff" })], "a.tiff is neither"],
  ["a large image", [image("big.png", 5_000_001)], "big.png has 5.0 MB; at most 5.0 MB"],
  ["a ninth image", Array.from({ length: 9 }, (_, n) => image(`${n}.png`)), "A message takes 8 images at most, so 8.png"],
  ["what a server does not take at once", [image("a.png", 4_000_000), image("b.png", 4_000_000)], "A message takes 7.0 MB at most, so b.png"],
])("why %s is not attached is a sentence", async (_, files, sentence) => {
  await show(emptyState());
  await give("drop", ...files);
  await vi.waitFor(() => expect(el.querySelector('.sagents-composer [role="alert"]')?.textContent).toContain(sentence), { timeout: 100_000 });
  expect(find("attached")).toHaveLength(files.length - 1);
});

test("text that is pasted stays text", async () => {
  await show(emptyState());
  const event = new Event("paste", { bubbles: true, cancelable: true });
  Object.assign(event, { clipboardData: { files: [] } });
  one("composer").dispatchEvent(event);
  expect(event.defaultPrevented).toBe(false);
});

test.each([[false, 1], [true, 0]])("whether a model reads images (%s) is known before they are sent", async (reads_images, warnings) => {
  const answer = (message: { id?: string; type: string }) =>
    message.type === "models" ? model.receive({ type: "reply", id: message.id!, models: [], reads_images }) : model.reply(message);
  await show(emptyState(), "session", "", { answer });
  await give("paste", text("a.txt"));
  expect(sent("models")).toEqual([]);
  await give("paste", image());
  expect(find("blind")).toHaveLength(warnings);
});

test("a message in the transcript shows its images, and says where one did not travel", async () => {
  const parts = [{ type: "text", text: "See" }, { type: "image", data: "QUFB" }, { type: "image", mime_type: "image/jpeg" }];
  await show(emptyState({ entries: [{ seq: 1, run_id: "r1", ts: 0, message: { role: "user", parts } } as never] }));
  expect([...one("entry").querySelectorAll("img")].map((shown) => shown.src)).toEqual(["data:image/png;base64,QUFB"]);
  expect(one("entry").textContent).toContain("Image image/jpeg, not shown here");
});
