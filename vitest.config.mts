import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/longest-first.mts";

// Certificates cost each Node process that a test starts more than the start itself, and nearly all processes talk only to
// loopback. Only npm needs them, see test/npm-environment.ts.
const certificates = process.env["NODE_EXTRA_CA_CERTS"];
if (certificates !== undefined) process.env["DROVER_TEST_CERTIFICATES"] = certificates;
delete process.env["NODE_EXTRA_CA_CERTS"];

// What a test leaves in the folders of its user is not left in those of the person who runs it.
const own = (process.env["DROVER_TEST_USER"] ??= emptyFolder());
process.env["XDG_STATE_HOME"] = join(own, "state");
process.env["XDG_CONFIG_HOME"] = join(own, "config");

const common = {
  pool: "forks" as const,
  // against hanging only: nothing here is judged by how long it takes
  testTimeout: 600_000,
  hookTimeout: 300_000,
  expect: { poll: { timeout: 240_000 } },
};

export default defineConfig({
  define: { DROVER_VERSION: JSON.stringify("0.0.0-source") },
  test: {
    // more than cores: many tests wait for processes rather than work
    maxWorkers: Math.min(8, 2 * availableParallelism()),
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: {
          ...common,
          name: "source",
          // Starting a process and loading Drover again costs a third of a second per file. Helpers of these tests
          // therefore keep their hooks inside functions: what they did on import would count for the first file only.
          isolate: false,
          include: [
            "src/**/*.test.ts",
            "scripts/**/*.test.ts",
            "web/data/*.test.ts",
            "test/contract/**/*.test.ts",
            "test/model-server/*.test.ts",
            "test/postgres/*.test.ts",
            "test/*.test.ts",
          ],
          globalSetup: ["test/postgres/setup.ts"],
        },
      },
      {
        extends: true,
        test: {
          ...common,
          name: "whole",
          include: ["test/e2e/**/*.test.ts", "test/docs/*.test.ts"],
          globalSetup: ["test/setup-build.ts", "test/postgres/setup.ts"],
        },
      },
      {
        extends: true,
        test: {
          ...common,
          name: "browser",
          include: ["test/browser/*.test.ts"],
          globalSetup: ["test/browser/setup.ts"],
        },
      },
    ],
  },
});

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "drover-test-user-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
