import { defineConfig } from "vitest/config";

export default defineConfig({
  define: { DROVER_VERSION: JSON.stringify("0.0.0-source") },
  test: {
    globalSetup: ["test/setup-build.ts"],
    include: ["src/**/*.test.ts", "test/**/*.test.ts", "scripts/**/*.test.ts"],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: process.env["CI"] ? ["default"] : ["default"],
  },
});
