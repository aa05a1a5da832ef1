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
import { chooseSocketPath } from "./coordinator-socket.ts";

const isRoot = process.getuid?.() === 0;
const nobody = 65_534;
const createdDirectories: string[] = [];
afterEach(() => createdDirectories.splice(0).forEach((path) => rmSync(path, { recursive: true, force: true })));

/** Creates a record whose path is too long for a socket, and a directory like /tmp. */
function createPaths(): { record: string; temporary: string } {
  const temporary = mkdtempSync("/tmp/dr-");
  createdDirectories.push(temporary);
  const record = join(temporary, "long-".repeat(20), "record");
  mkdirSync(record, { recursive: true, mode: 0o700 });
  return { record, temporary };
}

function expectPrivate(path: string | null): void {
  const directory = lstatSync(dirname(path!));
  expect([directory.isDirectory(), directory.uid, directory.mode & 0o777]).toEqual([true, process.getuid?.(), 0o700]);
}

const unsafeDirectories: [what: string, create: (path: string) => void, requiresRoot?: true][] = [
  ["is gone", () => undefined],
  ["is a file", (path) => writeFileSync(path, "")],
  ["is a symbolic link to a directory of this user", (path) => symlinkSync(dirname(path), path)],
  ["is a symbolic link to nothing", (path) => symlinkSync("nothing", path)],
  ["is writable by everybody", (path) => (mkdirSync(path), chmodSync(path, 0o777))],
  ["is writable by its group", (path) => (mkdirSync(path), chmodSync(path, 0o770))],
  ["has the mode of /tmp", (path) => (mkdirSync(path), chmodSync(path, 0o1777))],
  ["belongs to another user", (path) => (mkdirSync(path), chownSync(path, nobody, nobody)), true],
];
const applicableCases = unsafeDirectories.filter(([, , requiresRoot]) => isRoot || !requiresRoot);

test("uses an unpredictable directory name that nobody can create first", () => {
  const { record, temporary } = createPaths();
  const other = createPaths();
  // An earlier version used this name.
  writeFileSync(join(temporary, `drover-${process.getuid?.()}`), "");
  const path = chooseSocketPath(record, {}, temporary);
  expectPrivate(path);
  expect(dirname(path!)).not.toBe(dirname(chooseSocketPath(other.record, {}, temporary)!));
});

test("uses the same path at the next start, and another one for a copy of the record", () => {
  const { record, temporary } = createPaths();
  const path = chooseSocketPath(record, {}, temporary);
  expect(chooseSocketPath(record, {}, temporary)).toBe(path);
  const copy = `${record}.copy`;
  cpSync(record, copy, { recursive: true });
  expect(chooseSocketPath(copy, {}, temporary)).not.toBe(path);
});

test.each(applicableCases)("does not reuse the directory of the last start if it %s", (_what, create) => {
  const { record, temporary } = createPaths();
  const lastDirectory = dirname(chooseSocketPath(record, {}, temporary)!);
  rmSync(lastDirectory, { recursive: true });
  create(lastDirectory);
  const path = chooseSocketPath(record, {}, temporary);
  expect(dirname(path!)).not.toBe(lastDirectory);
  expectPrivate(path);
});

test.each(applicableCases)("finds another place for the socket if the runtime directory %s", (what, create) => {
  const { record, temporary } = createPaths();
  const runtime = join(temporary, "runtime");
  mkdirSync(runtime);
  create(join(runtime, "drover"));
  const path = chooseSocketPath(record, { XDG_RUNTIME_DIR: runtime }, temporary);
  expectPrivate(path);
  expect(dirname(path!) === join(runtime, "drover")).toBe(what === "is gone");
});

test.each(["", "relative\n", "/\n", "/tmp\n", "/proc/self/none\n", "\u0000", "x".repeat(5000)])(
  "ignores an unusable path in the file of the last directory: %j",
  (text) => {
    const { record, temporary } = createPaths();
    writeFileSync(socketDirectoryFile(record), text);
    expect(dirname(dirname(chooseSocketPath(record, {}, temporary)!))).toBe(temporary);
  },
);

test("starts without a socket if no directory can be created", () => {
  const { record, temporary } = createPaths();
  expect(chooseSocketPath(record, {}, join(temporary, "missing"))).toBeNull();
});
