import { spawnSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { bin, drover, createDirectory, getTestHome, root } from "./drover.ts";

/** Runs Drover through a link, as a shell finds it on PATH. */
function runThroughLink(link: string, cwd: string, ...args: string[]): string {
  mkdirSync(join(link, ".."), { recursive: true });
  symlinkSync(bin, link);
  const env = { PATH: process.env["PATH"] ?? "", HOME: getTestHome(), DROVER_STATE_DIR: join(cwd, "state") };
  return spawnSync(link, args, { cwd, env, encoding: "utf8" }).stderr;
}

it("prints `npx drover` in errors, hints and help inside the checkout", async () => {
  const env = { DROVER_STATE_DIR: join(createDirectory(), "state") };
  const unknown = await drover(["runs", "nope"], { cwd: root, env });
  expect(unknown.stderr).toContain("Use npx drover runs list or npx drover runs show");
  const failedExec = await drover(["exec", "exit 3"], { cwd: root, env });
  expect(failedExec).toMatchObject({ code: 3, stderr: expect.stringMatching(/^ {2}npx drover runs show \S+$/m) });
  const retried = await drover(["runs", "retry", "last"], { cwd: root, env });
  expect(retried.stderr).toMatch(/: npx drover exec --cwd /);
  const help = await drover(["help", "runs", "list"], { cwd: root, env });
  expect(help.stdout).toMatch(/^ {2}npx drover runs list /m);
});

it("prints `npx drover` if npx started it, and `drover` for an installed one", () => {
  const cwd = createDirectory();
  const npxOutput = runThroughLink(join(cwd, "node_modules", ".bin", "drover"), cwd, "exec", "exit 3");
  expect(npxOutput).toMatch(/^ {2}npx drover runs show \S+$/m);
  const installed = runThroughLink(join(cwd, "bin", "drover"), cwd, "exec", "exit 3");
  expect(installed).toMatch(/^ {2}drover runs show \S+$/m);
});
