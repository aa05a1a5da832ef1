import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { createTestDirectories } from "../../../../test/fixtures/execute/directories.ts";
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

const at = createTestDirectories("operator-home/in", "tmp", "home", "work");
beforeEach(() => {
  writeFileSync(at("token"), "the record's token");
  for (let round = 0; round < rounds; round += 1) writeFileSync(at("operator-home", "in", `file-${round}`), "login");
  writeFileSync(at("outside", rollout), '{"type":"token_usage_record","payload":"of another user"}\n');
});

/**
 * What Drover does in directories that a run can write to, with the directory that the run swaps for a symlink.
 */
const actions: Record<string, { directory: string; act(round: number): Promise<unknown> }> = {
  "copies the operator's files": {
    directory: "home/in",
    act: (round) => copyHomeFiles(at("operator-home"), at("home"), [`in/file-${round}`]),
  },
  "writes gemini's settings": {
    directory: "home/.gemini",
    act: async () => {
      rmSync(at("home", ".gemini", "settings.json"), { force: true });
      const dirs = { homeDir: at("home"), workDir: at("work"), tmpDir: at("tmp") };
      await gemini.definition.prepare(createTurn({ ...dirs, env: { HOME: at("operator-home") } }));
    },
  },
  "writes an input": {
    directory: "work",
    act: (round) => createInputs(createTurn({}).invocation, at("work")).write(`input-${round}`, "content"),
  },
  "writes a review": {
    directory: "work",
    act: async (round) => (await openReview(at("work"), `review-${round}`)).write("content"),
  },
};

describe.skipIf(!canSwap)("while a process of the run swaps a directory for a symlink", () => {
  test.each(Object.entries(actions))("%s, and nothing outside changes", async (_, { directory, act }) => {
    const before = readdirSync(at("outside")).sort();
    mkdirSync(at(directory), { recursive: true });
    symlinkSync(at("outside"), at("link"));
    await whileSwapping(at(directory), at("link"), async () => {
      for (let round = 0; round < rounds; round += 1)
        // May be refused while the symlink is there.
        await act(round).catch((error: unknown) => expect(error).toBeInstanceOf(Error));
    });
    expect(readdirSync(at("outside")).sort()).toEqual(before);
    expect(readFileSync(at("outside", "kept"), "utf8")).toBe("as it was");
  });

  test("never reads another user's rollout", async () => {
    const day = at("home", "sessions", "2026", "11", "16");
    mkdirSync(day, { recursive: true });
    writeFileSync(join(day, rollout), "{}\n");
    symlinkSync(at("outside"), at("link"));
    await whileSwapping(day, at("link"), async () => {
      for (let round = 0; round < rounds; round += 1)
        expect((await readRollout(at("home"), thread)).join("\n")).not.toContain("of another user");
    });
  });

  test("copies nothing but the operator's own file", async () => {
    symlinkSync(at("token"), at("link"));
    await whileSwapping(at("operator-home", "in", "file-0"), at("link"), async () => {
      for (let round = 0; round < rounds; round += 1) {
        const to = at("home", String(round));
        mkdirSync(to);
        await copyHomeFiles(at("operator-home"), to, ["in/file-0"]).catch((error: unknown) =>
          expect(error).toBeInstanceOf(Error),
        );
        for (const name of readdirSync(to)) expect(readFileSync(join(to, name, "file-0"), "utf8")).toBe("login");
      }
    });
  });
});
