import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import { bin, createDirectory, getTestHome } from "./drover.ts";

/** Runs a bash script in its own directory, with the command line as `$DROVER`. */
function runInBash(script: string) {
  const cwd = createDirectory();
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: getTestHome(),
    DROVER_STATE_DIR: join(cwd, "state"),
    DROVER: `${process.execPath} ${bin}`,
  };
  return spawnSync("bash", ["-c", script], { cwd, env, encoding: "utf8" });
}

it("says that the reader of stdout closed the pipe, and keeps the exit code of a stopped command", () => {
  const { stdout, stderr } = runInBash('$DROVER exec yes | head -n 1; echo "code ${PIPESTATUS[0]}"');
  expect(stdout).toBe("y\ncode 130\n");
  expect(stderr).toContain(
    "drover: The reader of stdout closed the pipe, so the command was stopped. [DROVER-EXE-011]",
  );
  expect(stderr).toMatch(/^ {2}drover runs show \S+$/m);
});

it("says nothing about the pipe with --quiet", () => {
  const { stdout, stderr } = runInBash('$DROVER exec --quiet yes | head -n 1; echo "code ${PIPESTATUS[0]}"');
  expect({ stdout, stderr }).toEqual({ stdout: "y\ncode 130\n", stderr: "" });
});

it("names the processes that it killed after the command, without secrets and not all of many", () => {
  // Before it executes sleep, the child is a copy of the shell, whose command line contains the word too.
  const waitForSleep = "until grep -q sleep /proc/$!/comm; do :; done";
  const killedOne = runInBash(`$DROVER exec 'sleep 7001 & ${waitForSleep}; echo done'`);
  expect(killedOne).toMatchObject({ status: 0, stdout: "done\n" });
  expect(killedOne.stderr).toMatch(
    /^drover: killed 1 process that outlived the command \(--leftovers keep would let them run\)\n {2}\d+ sleep 7001\n$/,
  );
  const secret = "hunter2hunter2";
  const withSecret = runInBash(
    `$DROVER exec --env SOME_TOKEN=${secret} 'sh -c "sleep 7002; true $SOME_TOKEN" & until grep -aq ^sh /proc/$!/cmdline; do :; done'`,
  );
  expect(withSecret.stderr).toContain("[redacted:SOME_TOKEN]");
  expect(withSecret.stderr).not.toContain(secret);
  const killedMany = runInBash(`$DROVER exec 'for i in 1 2 3 4 5 6 7 8 9 10; do sleep 700$i & done; ${waitForSleep}'`);
  expect(killedMany.stderr).toContain("drover: killed 10 processes that outlived the command");
  expect(killedMany.stderr).toMatch(/^ {2}and 2 more$/m);
  expect(runInBash("$DROVER exec --quiet 'sleep 7003 & true'")).toMatchObject({ status: 0, stderr: "" });
});
