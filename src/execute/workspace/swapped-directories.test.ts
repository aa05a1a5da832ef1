import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { canSwap, whileSwapping } from "../../../test/fixtures/execute/swap-paths.ts";
import type { SessionFile } from "../../model/session-state.ts";
import {
  holdPrivateDirectory,
  listPrivateDirectory,
  makePrivateDirectory,
  removeNonDirectories,
} from "./private-directory.ts";
import { removeTree } from "./remove-tree.ts";
import { restoreFiles } from "./session-files.ts";
import { listMarkedSessions, markSession } from "./session-marks.ts";

const owner = { store_id: "store" };
const rounds = 150;

let directory: string;
let state: string;
let outside: string;
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "drover-swapped-"));
  state = join(directory, "state");
  outside = join(directory, "outside");
  mkdirSync(state);
  // Has the same names as the state, so that a path through the symlink leads to an existing entry.
  mkdirSync(join(outside, "in", "deep"), { recursive: true });
  for (const name of ["kept", "in/kept", "in/deep/kept"]) writeFileSync(join(outside, name), "as it was");
  symlinkSync("kept", join(outside, "in", "link"));
  await markSession(join(directory, "made", "homes"), "kept", owner);
  for (const name of readdirSync(join(directory, "made", "homes.owners")))
    renameSync(join(directory, "made", "homes.owners", name), join(outside, name));
  replaceBoth();
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Has the name of the directory of marks, so that every test can swap it. */
const swapped = (): string => join(state, "homes.owners");

/** Puts a new symlink beside a directory, because Drover may have removed the previous one. */
function replaceBoth(round = -1): void {
  const steps = [
    () => renameSync(join(directory, "link"), join(directory, `before-${round}`)),
    () => symlinkSync(outside, join(directory, "link")),
    () => mkdirSync(swapped()),
  ];
  for (const step of steps) {
    try {
      step();
    } catch (error) {
      expect(["ENOENT", "EEXIST"]).toContain(error instanceof Error && "code" in error && error.code);
    }
  }
}

const listOutside = (): string[] => readdirSync(outside, { recursive: true, encoding: "utf8" }).sort();
const files = (...paths: string[]): AsyncIterable<SessionFile> =>
  (async function* () {
    for (const path of paths) yield { path, type: "executable" as const, bytes: Buffer.from("restored") };
    yield { path: "in/empty", type: "folder" as const, bytes: new Uint8Array() };
    yield { path: "in/to-kept", type: "link" as const, bytes: Buffer.from("kept") };
  })();

/** What Drover does in directories that runs can write to. Meanwhile, `at` is swapped for a symlink. */
const actions: Record<string, (at: string, round: number) => Promise<unknown>> = {
  "creates a directory": async (at, round) => makePrivateDirectory(state, join(at, `new-${round}`, "below")),
  "removes a symlink in the way of a directory": async (at) => removeNonDirectories(state, join(at, "in", "link")),
  "marks a session": (_, round) => markSession(join(state, "homes"), `s${round}`, owner),
};

describe.skipIf(!canSwap)("while another process swaps a directory for a symlink", () => {
  test.each(Object.entries(actions))("%s, and changes nothing outside", async (_, action) => {
    const before = listOutside();
    await whileSwapping(swapped(), join(directory, "link"), async () => {
      for (let round = 0; round < rounds; round += 1) {
        replaceBoth(round);
        // May be refused while the symlink is there.
        await action(swapped(), round).catch((error: unknown) => expect(error).toHaveProperty("code"));
      }
    });
    expect(listOutside()).toEqual(before);
    expect(readFileSync(join(outside, "kept"), "utf8")).toBe("as it was");
  });

  test("lists nothing from outside", async () => {
    await whileSwapping(swapped(), join(directory, "link"), async () => {
      for (let round = 0; round < rounds; round += 1) {
        replaceBoth(round);
        expect(await listPrivateDirectory(state, swapped())).not.toContain("kept");
        const sessions = await listMarkedSessions(join(state, "homes"), owner).catch((error: unknown) =>
          expect(error).toHaveProperty("code"),
        );
        expect(sessions ?? []).toEqual([]);
      }
    });
  });

  test.each([
    ["that is the session's", "work"],
    ["inside it", "work/in"],
    ["above it", "."],
  ])("restores no file outside: a directory %s", async (_, name) => {
    const work = join(state, "above", "work");
    const target = { ".": outside, work: outside, "work/in": join(outside, "in") }[name]!;
    mkdirSync(join(outside, "work", "in"), { recursive: true });
    const before = listOutside();
    const link = join(directory, "link");
    for (let round = 0; round < 10; round += 1) {
      await removeTree(directory, join(state, "above"));
      mkdirSync(join(work, "in"), { recursive: true });
      rmSync(link, { recursive: true, force: true });
      symlinkSync(target, link);
      const names = Array.from({ length: 30 }, (_unused, index) => `in/f${index}`);
      await whileSwapping(join(state, "above", name), link, async () => {
        const held = holdOrNull(work);
        if (held === null) return;
        await restoreFiles(held, files(...names)).catch((error: unknown) => expect(error).toHaveProperty("code"));
        held.close();
      });
      expect(listOutside()).toEqual(before);
    }
  });
});

function holdOrNull(work: string): ReturnType<typeof holdPrivateDirectory> | null {
  try {
    return holdPrivateDirectory(state, work);
  } catch (error) {
    expect(error).toHaveProperty("code");
    return null;
  }
}

test("restores files, directories and symlinks with their modes", async () => {
  const held = holdPrivateDirectory(state, join(state, "work"));
  await restoreFiles(held, files("a", "in/deep/b"));
  held.close();
  const restored = readdirSync(join(state, "work"), { recursive: true, encoding: "utf8" }).sort();
  expect(restored).toEqual(["a", "in", "in/deep", "in/deep/b", "in/empty", "in/to-kept"]);
});
