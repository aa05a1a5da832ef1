import { defineConfig } from "vitest/config";

// Only loopback is spoken to: certificates would cost each process that a test starts more than Node's own start.
delete process.env["NODE_EXTRA_CA_CERTS"];

const common = {
  pool: "forks" as const,
  // against hanging only: nothing here is judged by how long it takes
  testTimeout: 240_000,
  hookTimeout: 120_000,
};

export default defineConfig({
  define: { DROVER_VERSION: JSON.stringify("0.0.0-source") },
  test: {
    // more than the cores of a small machine: many tests wait for processes rather than work
    maxWorkers: 3,
    projects: [
      {
        extends: true,
        test: {
          ...common,
          name: "source",
          include: [
            "src/**/*.test.ts",
            "scripts/**/*.test.ts",
            "test/contract/**/*.test.ts",
            "test/clients/*.test.ts",
            "test/model-server/*.test.ts",
            "test/postgres/*.test.ts",
          ],
          globalSetup: ["test/postgres/setup.ts"],
        },
      },
      {
        extends: true,
        test: {
          ...common,
          name: "whole",
          include: ["test/e2e/**/*.test.ts"],
          globalSetup: ["test/setup-build.ts", "test/postgres/setup.ts"],
        },
      },
    ],
  },
});
