import { defineConfig } from "vitest/config";

export default defineConfig({
  // DOMPurify is only as good as the DOM it works in; jsdom's is the one its authors test with.
  // No test is about how fast a machine is: the limit is there so that one which hangs ends.
  test: { testTimeout: 120_000, hookTimeout: 120_000, environment: "jsdom", include: ["tests/**/*.test.{ts,tsx}"], setupFiles: ["tests/setup.ts"] },
});
