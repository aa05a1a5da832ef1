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

let top: string;
beforeEach(() => (top = mkdtempSync(join(tmpdir(), "drover-move-"))));
afterEach(() => rmSync(top, { recursive: true, force: true }));

const findHeadCopy = (record: string): string => join(top, "heads", record.replaceAll("/", "-"));
const open = (record: string) => openStore({ directory: record, now: () => new Date(), createIfMissing: true });
const move = (from: string, to: string) => moveState({ from, to, findHeadCopy });

/** Creates the state of an earlier version: a record of 3 runs and 6 rows, and one of each other entry. */
async function createEarlierState(name: string): Promise<string> {
  const state = join(top, name);
  const created = mkdtempSync(join(top, "made-"));
  const store = await open(created);
  await recordRuns(store, 3);
  await store.close();
  // use a copy, because this process keeps the database open until its statements are garbage-collected
  cpSync(created, state, { recursive: true });
  const database = connect(layout.databaseFile(state), "write");
  database.exec("pragma journal_mode = delete");
  database.close();
  for (const file of ["token", "place", "coordinator.json", "chat-history"]) writeFileSync(join(state, file), file);
  for (const folder of ["work/s1", "homes/s1", "tmp", "runners/one", "logs", "locks", "files/ab"])
    mkdirSync(join(state, folder), { recursive: true });
  writeFileSync(join(state, "work/s1/note"), "kept");
  symlinkSync("note", join(state, "work/s1/link"));
  return state;
}

const pointingTo = (from: string) =>
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
  // a stale announcement does not mean that a coordinator is running
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
  move(state, join(top, "new"));
  await expectIntact(join(top, "new"));
  expect(existsSync(state)).toBe(false);
});

it("moves a state in the current layout with its head copy, and back again", async () => {
  const state = await createEarlierState("state");
  for (const [from, to] of [
    [state, join(top, "a")],
    [join(top, "a"), join(top, "b")],
    [join(top, "b"), join(top, "a")],
  ] as const)
    move(from, to);
  await expectIntact(join(top, "a"));
  expect(readdirSync(join(top, "heads"))).toHaveLength(1);
});

it("finds the earlier state of the user next to those of projects, which stay", async () => {
  const folder = await createEarlierState("drover");
  mkdirSync(join(folder, "projects", "one"), { recursive: true });
  const own = join(folder, "user");
  expect(() => rejectEarlierState(own)).toThrow(pointingTo(folder));
  move(folder, own);
  await expectIntact(own);
  expect(readdirSync(folder).sort()).toEqual(["projects", "user"]);
});

it("recognizes a runner's state without a database", () => {
  const state = join(top, "state");
  mkdirSync(join(state, "runners/one"), { recursive: true });
  writeFileSync(join(state, "runner-token"), "mine");
  expect(() => rejectEarlierState(state)).toThrow(expect.objectContaining({ code: "DROVER-STA-013" }));
  move(state, state);
  expect(readFileSync(layout.runnerTokenFile(layout.recordDirectory(state)), "utf8")).toBe("mine");
  rejectEarlierState(state);
});

/** Simulates a kill after each rename, in their order. */
it("makes other commands fail after a kill at any step, and can be repeated", async () => {
  const names = [...layout.runsNames, ...layout.recordNames];
  for (let steps = 0; steps <= names.length; steps += 1) {
    const [from, to] = [await createEarlierState(`from-${steps}`), join(top, `to-${steps}`)];
    writeFileSync(join(from, "nothing"), "");
    mkdirSync(to);
    writeFileSync(layout.movingFile(to), JSON.stringify({ from, done: false, copies: false }));
    for (const name of names.slice(0, steps)) {
      const half = (layout.runsNames as readonly string[]).includes(name)
        ? layout.runsDirectory
        : layout.recordDirectory;
      mkdirSync(half(to), { recursive: true });
      if (existsSync(join(from, name))) renameSync(join(from, name), join(half(to), name));
    }
    if (steps < names.length) expect(() => rejectEarlierState(to)).toThrow(pointingTo(from));
    expect(() => move(join(top, "another"), to)).toThrow("interrupted");
    move(from, to);
    await expectIntact(to);
    expect(readdirSync(from)).toEqual(["nothing"]);
  }
});

const shm = "/dev/shm";
const otherDevice = existsSync(shm) && statSync(shm).dev !== statSync(tmpdir()).dev;

it.runIf(otherDevice)("copies between file systems, and repeats a killed copy", async () => {
  const far = mkdtempSync(join(shm, "drover-move-"));
  try {
    const whole = await createEarlierState("first");
    move(whole, join(far, "first"));
    await expectIntact(join(far, "first"));
    expect(existsSync(join(whole, "work"))).toBe(false);

    // killed while the copies are renamed into place
    const [from, to] = [await createEarlierState("second"), join(far, "second")];
    mkdirSync(layout.recordDirectory(to), { recursive: true });
    cpSync(join(from, "audit.key"), layout.auditKeyFile(layout.recordDirectory(to)));
    mkdirSync(`${layout.movingFile(to)}.copy`);
    writeFileSync(layout.movingFile(to), JSON.stringify({ from, done: false, copies: true }));
    move(from, to);
    await expectIntact(to);

    // killed after that: later writes of other processes stay
    const last = await createEarlierState("third");
    const there = join(far, "third");
    cpSync(last, join(top, "again"), { recursive: true, verbatimSymlinks: true });
    move(last, there);
    const store = await open(layout.recordDirectory(there));
    await recordRuns(store, 1);
    await store.close();
    renameSync(join(top, "again"), last);
    writeFileSync(layout.movingFile(there), JSON.stringify({ from: last, done: false, copies: true }));
    move(last, there);
    expect(await verifyAudit({ directory: layout.recordDirectory(there) })).toMatchObject({ ok: true, rows: 8 });
    expect(existsSync(join(last, "drover.db"))).toBe(false);
  } finally {
    rmSync(far, { recursive: true });
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
  ["The state could not be moved", (_from, to) => writeFileSync(join(to, "runs"), "in the way")],
])("rejects the move and changes nothing: %s", async (message, prepare) => {
  const [from, to] = [await createEarlierState("from"), join(top, "to")];
  mkdirSync(to);
  const undo = await prepare(from, to);
  const before = readdirSync(from).filter((name) => !/coordinator.lock|-(?:wal|shm|journal)$/.test(name));
  expect(() => move(from, to)).toThrow(
    expect.objectContaining({ code: "DROVER-STA-014", message: expect.stringContaining(message) }),
  );
  expect(readdirSync(from)).toEqual(expect.arrayContaining(before));
  expect(existsSync(layout.movingFile(to))).toBe(false);
  expect(existsSync(layout.databaseFile(layout.recordDirectory(to)))).toBe(false);
  await undo?.();
});

it("ignores locks of dead processes", async () => {
  const from = await createEarlierState("from");
  const child = spawn("true");
  await new Promise((resolve) => child.once("close", resolve));
  writeFileSync(join(from, "runners/one/lock"), JSON.stringify({ ...getCurrentOwner(), pid: child.pid, start: "" }));
  move(from, join(top, "to"));
  await expectIntact(join(top, "to"));
});

it.runIf(process.getuid?.() === 0)("does not move the state of another user", async () => {
  const from = await createEarlierState("from");
  chownSync(from, 1234, 1234);
  expect(() => move(from, join(top, "to"))).toThrow("belongs to another user");
});

it("reports a directory without a state", () => {
  mkdirSync(join(top, "empty"));
  expect(() => move(join(top, "empty"), join(top, "to"))).toThrow("contains no Drover state");
  expect(existsSync(dirname(join(top, "to", "x")))).toBe(false);
});
