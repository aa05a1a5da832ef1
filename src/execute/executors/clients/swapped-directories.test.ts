import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { canSwap, whileSwapping } from "../../../../test/fixtures/execute/swap-paths.ts";
import { createInputs } from "../../scaffold/inputs.ts";
import { readRollout } from "./codex-rollout.ts";
import { createTurn } from "./fixtures/turns.ts";
import { gemini } from "./gemini.ts";
import { copyHomeFiles } from "./home-files.ts";
import { openReview } from "./review-file.ts";

const rounds = 200;
const thread = "01a1e1fc-d61e-7cb2-ae18-2d213749191e";
const rollout = `rollout-2026-11-16T01-33-25-${thread}.jsonl`;

let directory: string;
let home: string;
let outside: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-swapped-"));
  home = join(directory, "home");
  outside = join(directory, "outside");
  for (const path of ["theirs", "tmp", "home", "work"]) mkdirSync(join(directory, path));
  writeFileSync(join(directory, "token"), "the record's token");
  for (let round = 0; round < rounds; round += 1) {
    mkdirSync(join(directory, "theirs", "in"), { recursive: true });
    writeFileSync(join(directory, "theirs", "in", `file-${round}`), "login");
  }
  mkdirSync(outside);
  writeFileSync(join(outside, "kept"), "as it was");
  writeFileSync(join(outside, rollout), '{"type":"token_usage_record","payload":"of another user"}\n');
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** What Drover does in directories that processes of a run can write to, and the directory that they exchange. */
const actions: Record<string, { swapped: string; act(round: number): Promise<unknown> }> = {
  "copies the operator's files": {
    swapped: "home/in",
    act: (round) => copyHomeFiles(join(directory, "theirs"), home, [`in/file-${round}`]),
  },
  "writes gemini's settings": {
    swapped: "home/.gemini",
    act: async () => {
      rmSync(join(home, ".gemini", "settings.json"), { force: true });
      const dirs = { homeDir: home, workDir: join(directory, "work"), tmpDir: join(directory, "tmp") };
      await gemini.definition.prepare(createTurn({ ...dirs, env: { HOME: join(directory, "theirs") } }));
    },
  },
  "writes an input": {
    swapped: "work",
    act: (round) => createInputs(createTurn({}).invocation, join(directory, "work")).write(`input-${round}`, "content"),
  },
  "writes a review": {
    swapped: "work",
    act: async (round) => (await openReview(join(directory, "work"), `review-${round}`)).write("content"),
  },
};

describe.skipIf(!canSwap)("while a process of the run exchanges a directory for a symlink", () => {
  test.each(Object.entries(actions))("%s, and nothing outside changes", async (_, { swapped, act }) => {
    const before = readdirSync(outside).sort();
    mkdirSync(join(directory, swapped), { recursive: true });
    symlinkSync(outside, join(directory, "link"));
    await whileSwapping(join(directory, swapped), join(directory, "link"), async () => {
      for (let round = 0; round < rounds; round += 1)
        // may be refused while the symlink is there
        await act(round).catch((error: unknown) => expect(error).toBeInstanceOf(Error));
    });
    expect(readdirSync(outside).sort()).toEqual(before);
    expect(readFileSync(join(outside, "kept"), "utf8")).toBe("as it was");
  });

  test("reads no thread of another user", async () => {
    const day = join(home, "sessions", "2026", "11", "16");
    mkdirSync(day, { recursive: true });
    writeFileSync(join(day, rollout), "{}\n");
    symlinkSync(outside, join(directory, "link"));
    await whileSwapping(day, join(directory, "link"), async () => {
      for (let round = 0; round < rounds; round += 1)
        expect((await readRollout(home, thread)).join("\n")).not.toContain("of another user");
    });
  });

  test("copies nothing but the operator's own file", async () => {
    symlinkSync(join(directory, "token"), join(directory, "link"));
    await whileSwapping(join(directory, "theirs", "in", "file-0"), join(directory, "link"), async () => {
      for (let round = 0; round < rounds; round += 1) {
        const to = join(home, String(round));
        mkdirSync(to);
        await copyHomeFiles(join(directory, "theirs"), to, ["in/file-0"]).catch((error: unknown) =>
          expect(error).toBeInstanceOf(Error),
        );
        for (const name of readdirSync(to)) expect(readFileSync(join(to, name, "file-0"), "utf8")).toBe("login");
      }
    });
  });
});
