import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chownSync, cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundle } from "../../test/fixtures/process/bundle.ts";
import { escapes } from "../../test/fixtures/process/kill-batch.ts";
import { waitUntil, exitOnceEscaped, createMark, findSurvivors } from "../../test/fixtures/process/survivors.ts";
import type { Isolation } from "../model/process.ts";
import type { LaunchMethodKind } from "./launch-method-selector.ts";
import { findOrphans, killOrphans } from "./orphans.ts";
import { createStart } from "./start.ts";

let directory: string;
let scripts: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-kill-"));
  scripts = join(directory, "escape");
  cpSync(join(import.meta.dirname, "../../test/fixtures/escape"), scripts, { recursive: true });
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const nobody = 65534;
const users: [string, number | undefined][] = [["the user who runs the tests", undefined]];
// Other users may have no access to this Node.
if (process.getuid?.() === 0 && spawnSync(process.execPath, ["-e", ""], { uid: nobody, gid: nobody }).status === 0)
  users.push(["an ordinary user", nobody]);

describe.each(users)("as %s", (_, user) => {
  const run = (fixture: string, ...rest: string[]): ChildProcess => {
    const file = bundle(fixture, directory);
    const identity = user === undefined ? {} : { uid: user, gid: user };
    if (user !== undefined) chownSync(directory, user, user);
    return spawn(process.execPath, [file, ...rest], {
      cwd: directory,
      stdio: ["ignore", "pipe", "inherit"],
      ...identity,
    });
  };
  const variants: [Isolation | "auto", LaunchMethodKind][] = [["auto", "static"], ["group", "static"], ["auto", "perl"], ["group", "perl"]]; // prettier-ignore

  test.each(variants)(
    "leaves no process of a stopped command, at isolation %s with launcher %s",
    async (isolation, launchMethod) => {
      const child = run("kill-batch-run.ts", isolation, launchMethod, scripts, "16");
      const output: Buffer[] = [];
      child.stdout!.on("data", (chunk: Buffer) => output.push(chunk));
      await once(child, "close");
      expect(JSON.parse(Buffer.concat(output).toString())).toEqual({
        ended: 16,
        levels: expect.anything(),
        survived: [],
        wrong: [],
      });
    },
  );

  test.each(variants)(
    "leaves no process after a SIGKILL of Drover itself, at isolation %s with launcher %s",
    async (isolation, launchMethod) => {
      const mark = createMark();
      const child = run("doomed.ts", isolation, launchMethod, scripts, mark);
      const ended = once(child, "close").then(
        ([code, signal]) => `ended before every process had escaped: ${code ?? signal}`,
      );
      expect(await Promise.race([once(child.stdout!, "data").then(String), ended])).toBe("ready\n");
      expect(findSurvivors(mark).length).toBeGreaterThanOrEqual(escapes.length);
      child.kill("SIGKILL");
      const allDead = await waitUntil(() => findSurvivors(mark).length === 0, 60_000);
      const survivorPids = findSurvivors(mark);
      for (const pid of survivorPids) process.kill(pid, "SIGKILL");
      expect({ allDead, left: survivorPids }).toEqual({ allDead: true, left: [] });
    },
  );
});

test("finds and kills the orphans of a Drover process that had no launcher, by their execution id", async () => {
  const mark = createMark();
  const running = createStart({ launchMethods: ["plain"] })(
    { executable: "sh", arguments: [join(scripts, "setsid.sh"), mark, "leave"] },
    { ids: { DROVER_EXECUTION_ID: mark }, stdin: "pipe" },
    new AbortController().signal,
  );
  await exitOnceEscaped(running, mark);
  await running.result;
  expect(findSurvivors(mark)).toHaveLength(1);
  expect(findOrphans([mark])).toEqual([{ pid: findSurvivors(mark)[0], executionId: mark }]);
  expect(findOrphans(["another"])).toEqual([]);
  expect(await killOrphans([mark])).toHaveLength(1);
  expect(await waitUntil(() => findSurvivors(mark).length === 0, 60_000)).toBe(true);
  expect(await killOrphans([mark])).toEqual([]);
});
