import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { keepAll } from "../../test/fixtures/process/capture.ts";
import type { CommandResult, Limits, StartCommand } from "../model/process.ts";
import { createCgroup, sweepCgroups } from "./cgroup.ts";
import { findCgroupParents } from "./cgroup-parents.ts";
import { createExecute } from "./execute.ts";
import { readMounts } from "./mounts.ts";
import { createStart, start } from "./start.ts";

const directory = mkdtempSync(join(tmpdir(), "drover-limits-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const runWith = (startCommand: StartCommand, limits: Limits, script: string): Promise<CommandResult> =>
  createExecute(startCommand)(
    { executable: "sh", arguments: ["-c", script], limits, workingDirectory: directory, timeoutMs: 200_000 },
    { capture: keepAll },
  );
const exceeded = (limit: string): object => ({ success: false, error: { code: "DROVER-EXE-009", limit } });

const startCommands: [string, StartCommand][] = [
  ["the launcher", start],
  ["perl", createStart({ launchMethods: ["perl"] })],
  ["a shell", createStart({ launchMethods: ["plain"] })],
];

describe.each(startCommands)("limits set by %s", (_, startCommand) => {
  test("stop a command that uses too much CPU time", async () =>
    expect(await runWith(startCommand, { cpuSeconds: 1 }, "while :; do :; done")).toMatchObject(
      exceeded("cpuSeconds"),
    ));

  test("stop a command that writes a file that is too large", async () =>
    expect(await runWith(startCommand, { fileSizeBytes: 8192 }, "exec head -c 20000 /dev/zero > big")).toMatchObject(
      exceeded("fileSizeBytes"),
    ));

  test("apply to the number of open files", async () =>
    expect(Buffer.from((await runWith(startCommand, { openFiles: 17 }, "ulimit -n")).stdout.head).toString()).toBe(
      "17\n",
    ));

  test("reject a limit above the host's own before the command runs", async () => {
    const result = await runWith(startCommand, { openFiles: 2 ** 40 }, "touch ran");
    expect(result).toMatchObject({
      success: false,
      isolation: null,
      error: { code: "DROVER-EXE-008", limit: "openFiles" },
    });
    expect(existsSync(join(directory, "ran"))).toBe(false);
  });

  test("do not affect a command within its limits", async () => {
    expect(
      await runWith(startCommand, { cpuSeconds: 10, fileSizeBytes: 1 << 20, openFiles: 64 }, "exit 0"),
    ).toMatchObject({
      success: true,
    });
  });
});

test.each(startCommands.slice(0, 2))(
  "limits the CPU time of a command that ignores SIGXCPU, by %s",
  async (_, startCommand) => {
    const result = await runWith(startCommand, { cpuSeconds: 1 }, "trap '' XCPU; while :; do :; done");
    expect(result).toMatchObject({ signal: "SIGKILL", ...exceeded("cpuSeconds") });
    expect(result.error?.message).toContain("CPU time (1 s)");
  },
);

test("does not mistake an early SIGKILL for the CPU limit", async () => {
  expect(await runWith(start, { cpuSeconds: 5 }, "kill -9 $$")).toMatchObject({ error: { code: "DROVER-EXE-003" } });
});

test("applies limits without isolation", async () => {
  const result = await createExecute(start)(
    { executable: "sh", arguments: ["-c", "ulimit -n"], limits: { openFiles: 19 } },
    { isolation: "none", capture: keepAll },
  );
  expect(result).toMatchObject({ isolation: "none", success: true });
  expect(Buffer.from(result.stdout.head).toString()).toBe("19\n");
});

const parents = findCgroupParents();
const cgroups = (): string[] =>
  [parents.memoryBytes, parents.processes].flatMap((cgroupParent) =>
    cgroupParent === null
      ? []
      : readdirSync(cgroupParent.parent).filter((name) => name.startsWith(`drover-${process.pid}-`)),
  );

if (parents.memoryBytes !== null && parents.processes !== null) {
  describe.each(startCommands)("cgroup limits set by %s", (_, startCommand) => {
    test("stop a command that uses too much memory, and leave no cgroup behind", async () => {
      expect(
        await runWith(startCommand, { memoryBytes: 24 << 20 }, "head -c 100000000 /dev/zero | tail -n 1 > /dev/null"),
      ).toMatchObject({ error: { code: "DROVER-EXE-009", limit: "memoryBytes" } });
      expect(cgroups()).toEqual([]);
    });

    test("stop a command that starts too many processes, and leave no cgroup behind", async () => {
      expect(
        await runWith(startCommand, { processes: 6 }, "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1 & done; wait"),
      ).toMatchObject(exceeded("processes"));
      expect(cgroups()).toEqual([]);
    });

    test("apply without isolation to a command given by its name", async () => {
      const running = startCommand(
        { executable: "true", limits: { memoryBytes: 64 << 20 } },
        { isolation: "none" },
        new AbortController().signal,
      );
      expect(await running.result).toMatchObject({ exitCode: 0, error: null });
    });

    test("do not affect a command within both limits", async () => {
      expect(await runWith(startCommand, { memoryBytes: 256 << 20, processes: 50 }, "echo fine")).toMatchObject({
        success: true,
      });
      expect(cgroups()).toEqual([]);
    });
  });

  test("removes the cgroups of dead Drover processes, and keeps those of living ones", () => {
    const { parent } = parents.processes!;
    const dead = join(parent, "drover-4194305-1"); // This pid is above the highest possible one.
    const alive = join(parent, `drover-${process.pid}-1`);
    mkdirSync(dead);
    mkdirSync(alive);
    try {
      expect(sweepCgroups()).toContain(dead);
      expect([existsSync(dead), existsSync(alive)]).toEqual([false, true]);
    } finally {
      rmdirSync(alive);
    }
  });
} else {
  test("rejects a cgroup limit that this host does not support before the command runs", async () => {
    const result = await runWith(start, { memoryBytes: 1 << 26 }, "touch ran");
    expect(result).toMatchObject({ isolation: null, error: { code: "DROVER-EXE-008", limit: "memoryBytes" } });
  });
}

const noCgroupParents = (): ReturnType<typeof findCgroupParents> => ({
  memoryBytes: null,
  processes: null,
  missingReason: "there is none",
  mountPoints: [],
});

test("rejects a limit without a parent cgroup, and reports why", () => {
  expect(createCgroup({ memoryBytes: 1 }, noCgroupParents)).toEqual({
    ok: false,
    limit: "memoryBytes",
    reason: "there is none",
  });
  expect(createCgroup({ cpuSeconds: 1 }, noCgroupParents)).toEqual({ ok: true, cgroup: null });
});

test("leaves no cgroup behind if a limit cannot be set", () => {
  const missingParent = { parent: join(directory, "none"), version: 2 } as const;
  expect(
    createCgroup({ processes: 1 }, () => ({
      ...noCgroupParents(),
      memoryBytes: missingParent,
      processes: missingParent,
    })),
  ).toMatchObject({
    ok: false,
    limit: "processes",
    reason: expect.stringContaining("ENOENT"),
  });
});

test("version 2: uses the parent cgroup if it was delegated", () => {
  const ownCgroup = join(directory, "unified", "user.slice", "drover.scope");
  mkdirSync(ownCgroup, { recursive: true });
  writeFileSync(join(ownCgroup, "cgroup.subtree_control"), "");
  writeFileSync(join(ownCgroup, "..", "cgroup.subtree_control"), "cpu memory pids\n");
  const mounts = `30 20 0:26 / ${join(directory, "unified")} rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n`;
  const delegatedParent = { parent: join(ownCgroup, ".."), version: 2 };
  expect(findCgroupParents("0::/user.slice/drover.scope\n", readMounts(mounts))).toMatchObject({
    memoryBytes: delegatedParent,
    processes: delegatedParent,
  });
  writeFileSync(join(ownCgroup, "..", "cgroup.subtree_control"), "cpu\n");
  expect(findCgroupParents("0::/user.slice/drover.scope\n", readMounts(mounts))).toMatchObject({
    memoryBytes: null,
    processes: null,
  });
});

test("version 1: finds the cgroup in a container that mounts part of the tree", () => {
  mkdirSync(join(directory, "v1", "inner"), { recursive: true });
  const mounts = `40 30 0:33 /docker/abc ${join(directory, "v1")} rw - cgroup cgroup rw,memory\n`;
  expect(findCgroupParents("4:memory:/docker/abc/inner\n0::/\n", readMounts(mounts))).toMatchObject({
    memoryBytes: { parent: join(directory, "v1", "inner"), version: 1 },
    processes: null,
  });
});
