import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import { bin, folder, homeFolder } from "./drover.ts";

/** Runs a bash script with `$DROVER` as the command line, in a directory of its own. */
function inBash(script: string) {
  const cwd = folder();
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: homeFolder(),
    DROVER_STATE_DIR: join(cwd, "state"),
    DROVER: `${process.execPath} ${bin}`,
  };
  return spawnSync("bash", ["-c", script], { cwd, env, encoding: "utf8" });
}

it("says that the reader of stdout closed the pipe, and keeps the exit code of a stopped command", () => {
  const { stdout, stderr } = inBash('$DROVER exec yes | head -n 1; echo "code ${PIPESTATUS[0]}"');
  expect(stdout).toBe("y\ncode 130\n");
  expect(stderr).toContain(
    "drover: The reader of stdout closed the pipe, so the command was stopped. [DROVER-EXE-011]",
  );
  expect(stderr).toMatch(/^ {2}drover runs show \S+$/m);
});

it("says nothing about the pipe with --quiet", () => {
  const { stdout, stderr } = inBash('$DROVER exec --quiet yes | head -n 1; echo "code ${PIPESTATUS[0]}"');
  expect({ stdout, stderr }).toEqual({ stdout: "y\ncode 130\n", stderr: "" });
});
