import { spawn } from "node:child_process";
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { recordRuns } from "../../test/fixtures/record/sample.ts";
import { rejectEarlierState } from "./earlier-state.ts";
import * as layout from "../model/state-layout.ts";
import { moveState } from "./move-state.ts";
import { readHead } from "../record/audit/head.ts";
import { getCurrentOwner } from "../record/audit/owner.ts";
import { verifyAudit } from "../record/audit/verify.ts";
import { openStore } from "../record/open.ts";
import { lockCoordinator } from "../record/coordinator-lock.ts";
import { connect } from "../record/sqlite/connection.ts";

let root: string;
beforeEach(() => (root = mkdtempSync(join(tmpdir(), "drover-move-"))));
afterEach(() => rmSync(root, { recursive: true, force: true }));

const findHeadCopy = (record: string): string => join(root, "heads", record.replaceAll("/", "-"));
const open = (record: string) => openStore({ directory: record, now: () => new Date(), createIfMissing: true });
const move = (from: string, to: string) => moveState({ from, to, findHeadCopy });

/** Creates the state of an earlier version: a record of 3 runs and 6 rows, and one of each other entry. */
async function createEarlierState(name: string): Promise<string> {
  const state = join(root, name);
  const openDirectory = mkdtempSync(join(root, "made-"));
  const store = await open(openDirectory);
  await recordRuns(store, 3);
  await store.close();
  // Use a copy, because this process keeps the database open until its statements are garbage-collected.
  cpSync(openDirectory, state, { recursive: true });
  const database = connect(layout.databaseFile(state), "write");
  database.exec("pragma journal_mode = delete");
  database.close();
  for (const file of ["token", "place", "coordinator.json", "chat-history"]) writeFileSync(join(state, file), file);
  for (const directory of ["work/s1", "homes/s1", "tmp", "runners/one", "logs", "locks", "files/ab"])
    mkdirSync(join(state, directory), { recursive: true });
  writeFileSync(join(state, "work/s1/note"), "kept");
  symlinkSync("note", join(state, "work/s1/link"));
  return state;
}

const errorPointingTo = (from: string) =>
  expect.objectContaining({
    code: "DROVER-STA-013",
    next: expect.stringContaining(`drover state move --from ${from}`),
  });

async function expectIntact(to: string): Promise<void> {
  const directory = layout.recordDirectory(to);
  const headCopy = findHeadCopy(directory);
  expect(await verifyAudit({ directory, headCopy })).toMatchObject({ ok: true, rows: 6 });
  expect(readHead(headCopy)?.count).toBe(6);
  expect(readFileSync(layout.tokenFile(directory, "token"), "utf8")).toBe("token");
  expect(readFileSync(join(layout.workDirectory(layout.runsDirectory(to)), "s1/link"), "utf8")).toBe("kept");
  expect(readdirSync(to).sort()).toEqual(["record", "runs"]);
  // A stale announcement does not mean that a coordinator is running.
  expect(existsSync(layout.announcementFile(directory))).toBe(false);
  rejectEarlierState(to);
  const store = await open(directory);
  await recordRuns(store, 1);
  await store.close();
  expect(await verifyAudit({ directory })).toMatchObject({ ok: true, rows: 8 });
}

it("converts an earlier state to the current layout in place", async () => {
  const state = await createEarlierState("state");
  expect(() => rejectEarlierState(state)).toThrow(expect.objectContaining({ code: "DROVER-STA-013" }));
  move(state, state);
  await expectIntact(state);
});

it("moves a .drover/ directory completely", async () => {
  const state = await createEarlierState("project/.drover");
  writeFileSync(join(state, ".gitignore"), "*\n");
  move(state, join(root, "new"));
  await expectIntact(join(root, "new"));
  expect(existsSync(state)).toBe(false);
});

it("moves a state in the current layout with its head copy, and moves it back", async () => {
  const state = await createEarlierState("state");
  for (const [from, to] of [
    [state, join(root, "a")],
    [join(root, "a"), join(root, "b")],
    [join(root, "b"), join(root, "a")],
  ] as const)
    move(from, to);
  await expectIntact(join(root, "a"));
  expect(readdirSync(join(root, "heads"))).toHaveLength(1);
});

it("moves the earlier state of the user and leaves the states of projects next to it in place", async () => {
  const directory = await createEarlierState("drover");
  mkdirSync(join(directory, "projects", "one"), { recursive: true });
  const userState = join(directory, "user");
  expect(() => rejectEarlierState(userState)).toThrow(errorPointingTo(directory));
  move(directory, userState);
  await expectIntact(userState);
  expect(readdirSync(directory).sort()).toEqual(["projects", "user"]);
});

it("recognizes a runner's state without a database", () => {
  const state = join(root, "state");
  mkdirSync(join(state, "runners/one"), { recursive: true });
  writeFileSync(join(state, "runner-token"), "runner-secret");
  expect(() => rejectEarlierState(state)).toThrow(expect.objectContaining({ code: "DROVER-STA-013" }));
  move(state, state);
  expect(readFileSync(layout.runnerTokenFile(layout.recordDirectory(state)), "utf8")).toBe("runner-secret");
  rejectEarlierState(state);
});

/** Simulates a kill after each rename, in the order of the renames. */
it("makes other commands fail after a kill at any step, and completes when it is repeated", async () => {
  const names = [...layout.runsNames, ...layout.recordNames];
  for (let steps = 0; steps <= names.length; steps += 1) {
    const [from, to] = [await createEarlierState(`from-${steps}`), join(root, `to-${steps}`)];
    writeFileSync(join(from, "nothing"), "");
    mkdirSync(to);
    writeFileSync(layout.movingFile(to), JSON.stringify({ from, done: false, copies: false }));
    for (const name of names.slice(0, steps)) {
      const getPart = (layout.runsNames as readonly string[]).includes(name)
        ? layout.runsDirectory
        : layout.recordDirectory;
      mkdirSync(getPart(to), { recursive: true });
      if (existsSync(join(from, name))) renameSync(join(from, name), join(getPart(to), name));
    }
    if (steps < names.length) expect(() => rejectEarlierState(to)).toThrow(errorPointingTo(from));
    expect(() => move(join(root, "another"), to)).toThrow("interrupted");
    move(from, to);
    await expectIntact(to);
    expect(readdirSync(from)).toEqual(["nothing"]);
  }
});

const shm = "/dev/shm";
const otherDevice = existsSync(shm) && statSync(shm).dev !== statSync(tmpdir()).dev;

it.runIf(otherDevice)("copies between file systems, and repeats a copy that was killed", async () => {
  const otherRoot = mkdtempSync(join(shm, "drover-move-"));
  try {
    const first = await createEarlierState("first");
    move(first, join(otherRoot, "first"));
    await expectIntact(join(otherRoot, "first"));
    expect(existsSync(join(first, "work"))).toBe(false);

    // Simulate a kill while the copies are renamed into place.
    const [from, to] = [await createEarlierState("second"), join(otherRoot, "second")];
    mkdirSync(layout.recordDirectory(to), { recursive: true });
    cpSync(join(from, "audit.key"), layout.auditKeyFile(layout.recordDirectory(to)));
    mkdirSync(`${layout.movingFile(to)}.copy`);
    writeFileSync(layout.movingFile(to), JSON.stringify({ from, done: false, copies: true }));
    move(from, to);
    await expectIntact(to);

    // Simulate a kill after that. Later writes of other processes must be kept.
    const third = await createEarlierState("third");
    const target = join(otherRoot, "third");
    cpSync(third, join(root, "again"), { recursive: true, verbatimSymlinks: true });
    move(third, target);
    const store = await open(layout.recordDirectory(target));
    await recordRuns(store, 1);
    await store.close();
    renameSync(join(root, "again"), third);
    writeFileSync(layout.movingFile(target), JSON.stringify({ from: third, done: false, copies: true }));
    move(third, target);
    expect(await verifyAudit({ directory: layout.recordDirectory(target) })).toMatchObject({ ok: true, rows: 8 });
    expect(existsSync(join(third, "drover.db"))).toBe(false);
  } finally {
    rmSync(otherRoot, { recursive: true });
  }
});

it.each<[string, (from: string, to: string) => void | (() => void) | Promise<() => unknown>]>([
  [
    "A coordinator is using",
    (from) => {
      const lock = lockCoordinator(from);
      return () => lock?.release();
    },
  ],
  [
    "The runner one is running as process",
    (from) => writeFileSync(join(from, "runners/one/lock"), JSON.stringify(getCurrentOwner())),
  ],
  [
    "is in use",
    async (from) => {
      const store = await open(from);
      store.connection.exec("pragma journal_mode = wal");
      await recordRuns(store, 1);
      return () => store.close();
    },
  ],
  [
    "already contains a state",
    (_from, to) => void mkdirSync(layout.logsDirectory(layout.recordDirectory(to)), { recursive: true }),
  ],
  [
    "is neither a file nor a directory",
    (from) => {
      rmSync(join(from, "files"), { recursive: true });
      symlinkSync("/etc", join(from, "files"));
    },
  ],
  ["The state could not be moved", (_from, to) => writeFileSync(join(to, "runs"), "not a directory")],
])("rejects the move and changes nothing: %s", async (message, prepare) => {
  const [from, to] = [await createEarlierState("from"), join(root, "to")];
  mkdirSync(to);
  const undo = await prepare(from, to);
  const namesBefore = readdirSync(from).filter((name) => !/coordinator.lock|-(?:wal|shm|journal)$/.test(name));
  expect(() => move(from, to)).toThrow(
    expect.objectContaining({ code: "DROVER-STA-014", message: expect.stringContaining(message) }),
  );
  expect(readdirSync(from)).toEqual(expect.arrayContaining(namesBefore));
  expect(existsSync(layout.movingFile(to))).toBe(false);
  expect(existsSync(layout.databaseFile(layout.recordDirectory(to)))).toBe(false);
  await undo?.();
});

it("moves a state with locks of dead processes", async () => {
  const from = await createEarlierState("from");
  const child = spawn("true");
  await new Promise((resolve) => child.once("close", resolve));
  writeFileSync(join(from, "runners/one/lock"), JSON.stringify({ ...getCurrentOwner(), pid: child.pid, start: "" }));
  move(from, join(root, "to"));
  await expectIntact(join(root, "to"));
});

it.runIf(process.getuid?.() === 0)("does not move the state of another user", async () => {
  const from = await createEarlierState("from");
  chownSync(from, 1234, 1234);
  expect(() => move(from, join(root, "to"))).toThrow("belongs to another user");
});

it("rejects a directory without a state", () => {
  mkdirSync(join(root, "empty"));
  expect(() => move(join(root, "empty"), join(root, "to"))).toThrow("contains no Drover state");
  expect(existsSync(dirname(join(root, "to", "x")))).toBe(false);
});
