import {
  chmodSync,
  chownSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { socketDirectoryFile } from "../model/state-layout.ts";
import { socketFor } from "./coordinator-socket.ts";

const isRoot = process.getuid?.() === 0;
const nobody = 65_534;
const made: string[] = [];
afterEach(() => made.splice(0).forEach((path) => rmSync(path, { recursive: true, force: true })));

/** A record whose path is too long for a socket, and a folder like /tmp. */
function place(): { record: string; temporary: string } {
  const temporary = mkdtempSync("/tmp/dr-");
  made.push(temporary);
  const record = join(temporary, "long-".repeat(20), "record");
  mkdirSync(record, { recursive: true, mode: 0o700 });
  return { record, temporary };
}

function expectPrivate(path: string | null): void {
  const folder = lstatSync(dirname(path!));
  expect([folder.isDirectory(), folder.uid, folder.mode & 0o777]).toEqual([true, process.getuid?.(), 0o700]);
}

const takeAway: [what: string, spoil: (folder: string) => void, asRoot?: true][] = [
  ["is gone", () => undefined],
  ["is a file", (folder) => writeFileSync(folder, "")],
  ["is a link to a folder of this user's", (folder) => symlinkSync(dirname(folder), folder)],
  ["is a link to nothing", (folder) => symlinkSync("nothing", folder)],
  ["can be written by others", (folder) => (mkdirSync(folder), chmodSync(folder, 0o777))],
  ["can be written by its group", (folder) => (mkdirSync(folder), chmodSync(folder, 0o770))],
  ["is like /tmp", (folder) => (mkdirSync(folder), chmodSync(folder, 0o1777))],
  ["belongs to another user", (folder) => (mkdirSync(folder), chownSync(folder, nobody, nobody)), true],
];
const here = takeAway.filter(([, , asRoot]) => isRoot || !asRoot);

test("a stranger cannot take the folder of a socket first, as nobody knows its name", () => {
  const { record, temporary } = place();
  const other = place();
  // what it was called once
  writeFileSync(join(temporary, `drover-${process.getuid?.()}`), "");
  const path = socketFor(record, {}, temporary);
  expectPrivate(path);
  expect(dirname(path!)).not.toBe(dirname(socketFor(other.record, {}, temporary)!));
});

test("the next start finds the same path, and a copy of the record has another one", () => {
  const { record, temporary } = place();
  const path = socketFor(record, {}, temporary);
  expect(socketFor(record, {}, temporary)).toBe(path);
  const copy = `${record}.copy`;
  cpSync(record, copy, { recursive: true });
  expect(socketFor(copy, {}, temporary)).not.toBe(path);
});

test.each(here)("a folder of the last start that %s is not used again", (_what, spoil) => {
  const { record, temporary } = place();
  const before = dirname(socketFor(record, {}, temporary)!);
  rmSync(before, { recursive: true });
  spoil(before);
  const path = socketFor(record, {}, temporary);
  expect(dirname(path!)).not.toBe(before);
  expectPrivate(path);
});

test.each(here)("a folder for runtime files that %s does not keep a coordinator from its socket", (what, spoil) => {
  const { record, temporary } = place();
  const runtime = join(temporary, "runtime");
  mkdirSync(runtime);
  spoil(join(runtime, "drover"));
  const path = socketFor(record, { XDG_RUNTIME_DIR: runtime }, temporary);
  expectPrivate(path);
  expect(dirname(path!) === join(runtime, "drover")).toBe(what === "is gone");
});

test.each(["", "relative\n", "/\n", "/tmp\n", "/proc/self/none\n", "\u0000", "x".repeat(5000)])(
  "a note of the last folder that says %j is not followed",
  (text) => {
    const { record, temporary } = place();
    writeFileSync(socketDirectoryFile(record), text);
    expect(dirname(dirname(socketFor(record, {}, temporary)!))).toBe(temporary);
  },
);

test("where no folder can be made there is no socket, and that keeps nobody from starting", () => {
  const { record, temporary } = place();
  expect(socketFor(record, {}, join(temporary, "missing"))).toBeNull();
});
