import { defineConfig } from "vitest/config";

export default defineConfig({
  // DOMPurify is only as good as the DOM it works in; jsdom's is the one its authors test with.
  test: { environment: "jsdom", include: ["tests/**/*.test.{ts,tsx}"], setupFiles: ["tests/setup.ts"] },
});
