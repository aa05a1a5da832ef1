import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { prepareShellRunners } from "../../../test/fixtures/execute/shell-runners.ts";
import { hostHas } from "../../../test/fixtures/process/host.ts";
import { defineExecutor } from "../scaffold/define-executor.ts";

// An agent sets variables for its programs, for example with `env` in `mcp_servers`.
const { setUp } = prepareShellRunners();

/** Runs its prompt as a shell script with another TMPDIR. */
const withTmpdir = (TMPDIR: string) =>
  defineExecutor({
    name: "shell",
    async execute({ runCli, prompt }) {
      return (await runCli({ command: ["/bin/sh", "-c", prompt], env: { TMPDIR } })).stdout;
    },
  });

describe.runIf(hostHas("sandbox"))("a run at sandbox", () => {
  test.each(["/", "/tmp"])(
    "writes only to its own temporary directory if its program sets TMPDIR to %s",
    async (path) => {
      const { fixture, directory, submit, waitForEnd } = await setUp(
        {
          executor: withTmpdir(path),
          supervise: { startOptions: { isolation: "sandbox", environment: { mode: "merge" }, graceMs: 500 } },
        },
        true,
      );
      const outside = join(directory, "outside");
      mkdirSync(outside);
      const script = `echo x > '${outside}/x'; echo x > "$TMPDIR/own" && echo "$TMPDIR"`;
      expect(await waitForEnd(submit(script))).toMatchObject({
        status: "completed",
        text: expect.stringContaining(`${fixture.options().supervise.directories.tmpRoot}/`),
      });
      expect(existsSync(join(outside, "x"))).toBe(false);
    },
  );
});
