// What the hub's page says waits for people.
import { render } from "preact";
import { afterEach, expect, test, vi } from "vitest";
import { Waiting } from "../src/dashboard/waiting";

const page = document.body;
const list = () => page.querySelector("[aria-label='What waits for people']");

afterEach(() => {
  render(null, page);
  vi.unstubAllGlobals();
});

test("its list closes for who leaves it before the page has drawn it", async () => {
  vi.stubGlobal("requestAnimationFrame", () => 0);
  render(<><Waiting approvals={[]} current="" where="" /><button id="elsewhere" /></>, page);
  page.querySelector<HTMLElement>("[data-testid=waiting]")!.click();
  await Promise.resolve();
  expect(list()).not.toBeNull();
  page.querySelector<HTMLElement>("#elsewhere")!.focus();
  await Promise.resolve();
  expect(list()).toBeNull();
});
