import { execFileSync, spawnSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { auditHeadFile, auditKeyFile, databaseFile, recordDirectory } from "../../src/model/state-layout.ts";
import type { CommandResult } from "./drover.ts";
import { createProject, countAuditRows } from "./project.ts";

describe("a record that vanished or was replaced", () => {
  const createOtherRecord = async (
    run: (...args: string[]) => Promise<CommandResult>,
    state: string,
  ): Promise<string> => {
    const kept = `${state}-kept`;
    renameSync(state, kept);
    for (const name of ["one", "two", "three"]) await run("exec", `echo ${name}`);
    renameSync(state, `${state}-other`);
    renameSync(kept, state);
    return recordDirectory(`${state}-other`);
  };
  it.each<[string, (record: string, run: (...args: string[]) => Promise<CommandResult>, state: string) => unknown]>([
    ["the state directory is removed", (_record, _run, state) => rmSync(state, { recursive: true })],
    ["the record directory is removed", (record) => rmSync(record, { recursive: true })],
    [
      "the record is moved aside, and an empty directory is in its place",
      (record) => {
        renameSync(record, `${record}-old`);
        mkdirSync(record, { mode: 0o700 });
      },
    ],
    [
      "the database is removed, and its head",
      (record) => {
        for (const end of ["", "-wal", "-shm"]) rmSync(databaseFile(record) + end, { force: true });
        rmSync(auditHeadFile(record));
      },
    ],
    [
      "the record of another project is in its place",
      async (record, run, state) => {
        const otherRecord = await createOtherRecord(run, state);
        rmSync(record, { recursive: true });
        cpSync(otherRecord, record, { recursive: true });
      },
    ],
    [
      "another record, with as many rows, is made in its place",
      async (record, run) => {
        rmSync(record, { recursive: true });
        const forgedExec = await run("exec", "echo forged");
        expect(forgedExec.stderr).toContain("does not match its audit head");
        for (const _ of [1, 2, 3]) await run("exec", "echo forged");
      },
    ],
    [
      "an older copy of it is restored by hand",
      async (record, run) => {
        cpSync(record, `${record}-copy`, { recursive: true });
        await run("exec", "echo later");
        rmSync(record, { recursive: true });
        renameSync(`${record}-copy`, record);
      },
    ],
    [
      "the database is emptied",
      (record) => {
        for (const end of ["-wal", "-shm"]) rmSync(databaseFile(record) + end, { force: true });
        truncateSync(databaseFile(record), 0);
        rmSync(auditHeadFile(record));
      },
    ],
    [
      "everything but the key is removed",
      (record) => {
        for (const name of readdirSync(record))
          if (join(record, name) !== auditKeyFile(record)) rmSync(join(record, name), { recursive: true });
      },
    ],
  ])("%s: verify, the next exec and every later verify report it", async (_what, damage) => {
    const { run, findStateDirectory } = createProject();
    for (const name of ["one", "two"]) await run("exec", `echo ${name}`);
    const directory = await findStateDirectory();
    await damage(recordDirectory(directory), run, directory);
    const firstVerify = await run("audit", "verify");
    const next = await run("exec", "echo next");
    expect(next).toMatchObject({ code: 0, stdout: "next\n" });
    const laterVerify = await run("audit", "verify");
    for (const verify of [firstVerify, laterVerify])
      expect(verify).toMatchObject({ code: 1, stdout: expect.stringMatching(/NOT intact.*DROVER-AUD-002/) });
  });

  it("a list of runs reports it", async () => {
    const { run, findStateDirectory } = createProject();
    await run("exec", "true");
    rmSync(await findStateDirectory(), { recursive: true });
    expect((await run("runs", "list")).stderr).toContain("is missing; it had 2 audit rows");
  });

  it("restoring a backup makes the record intact again", async () => {
    const { cwd, run, findStateDirectory } = createProject();
    await run("exec", "true");
    await run("backup", join(cwd, "copy"));
    await run("exec", "true");
    rmSync(await findStateDirectory(), { recursive: true });
    expect((await run("restore", join(cwd, "copy"))).code).toBe(0);
    expect(countAuditRows(await run("audit", "verify"))).toBe(2);
    expect((await run("exec", "true")).stderr).toBe("");
    expect(countAuditRows(await run("audit", "verify"))).toBe(4);
  });
});

/** Listens under the file's base name, because the whole path may be too long for a socket. */
const listenAt = (file: string): void => {
  const script = "IO::Socket::UNIX->new(Local => shift, Listen => 1) or die";
  execFileSync("perl", ["-MIO::Socket::UNIX", "-e", script, basename(file)], { cwd: dirname(file) });
};

describe("a head that is not a plain file", () => {
  const kinds: [string, (file: string) => unknown][] = [
    ["a pipe", (file) => spawnSync("mkfifo", [file])],
    ["a directory", (file) => mkdirSync(file)],
    ["a link to itself", (file) => symlinkSync(file, file)],
    ["a link to a device", (file) => symlinkSync("/dev/zero", file)],
    ["a link to a pipe", (file) => (spawnSync("mkfifo", [`${file}.pipe`]), symlinkSync(`${file}.pipe`, file))],
    ["a link to nothing", (file) => symlinkSync(`${file}.nothing`, file)],
    ["a socket", listenAt],
    ["bytes that are not text", (file) => writeFileSync(file, Buffer.alloc(81, 0xff))],
    ["empty", (file) => writeFileSync(file, "")],
    ["of a gigabyte", (file) => (writeFileSync(file, ""), truncateSync(file, 2 ** 30))],
    ["a head and more", (file) => writeFileSync(file, `${"0".repeat(16)}:${"0".repeat(64)}\n${"x".repeat(100)}`)],
  ];
  it.each(kinds)("audit.head is %s: verify and exec neither wait for it nor accept it", async (_what, make) => {
    const { run, findStateDirectory } = createProject();
    await run("exec", "true");
    const file = auditHeadFile(recordDirectory(await findStateDirectory()));
    rmSync(file);
    make(file);
    expect(await run("audit", "verify")).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("audit.head is missing"),
    });
    expect((await run("exec", "echo on")).stdout).toBe("on\n");
    expect((await run("audit", "verify")).code).toBe(1);
  });

  it.each(kinds)("the second head is %s: verify reports it, and exec continues", async (_what, make) => {
    const { run } = createProject();
    await run("exec", "true");
    const file = JSON.parse((await run("state", "--json")).stdout).second_head as string;
    rmSync(file);
    make(file);
    const { code, stdout } = await run("audit", "verify");
    expect([code, stdout]).toEqual([1, expect.stringContaining("outside the record")]);
    expect((await run("exec", "echo on")).stdout).toBe("on\n");
  });

  it("a missing second head is not a fault", async () => {
    const { run, home } = createProject();
    await run("exec", "true");
    rmSync(join(home, ".local/state/drover/heads"), { recursive: true });
    expect((await run("audit", "verify")).code).toBe(0);
    expect((await run("exec", "true")).stderr).toBe("");
  });
});

it("a copied state directory does not vouch for the original", async () => {
  const { run, findStateDirectory } = createProject();
  await run("exec", "true");
  const directory = await findStateDirectory();
  copyFileSync(databaseFile(recordDirectory(directory)), join(directory, "copy"));
  await run("exec", "true");
  copyFileSync(join(directory, "copy"), databaseFile(recordDirectory(directory)));
  for (const end of ["-wal", "-shm"]) rmSync(databaseFile(recordDirectory(directory)) + end, { force: true });
  expect((await run("audit", "verify")).code).not.toBe(0);
});
