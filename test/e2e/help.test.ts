import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { commands } from "../../src/cli/commands.ts";
import { drover, exists, createDirectory } from "./drover.ts";

describe("drover help", () => {
  it("prints the overview, with every command exactly once", async () => {
    const [plain, long, help] = await Promise.all([drover([]), drover(["--help"]), drover(["help"])]);
    expect(long.stdout).toBe(plain.stdout);
    expect(help.stdout).toBe(plain.stdout);
    const listed = plain.stdout.split("\n").flatMap((line) => /^  ([a-z-]+(?: [a-z]+)?)  +[a-z]/.exec(line)?.[1] ?? []);
    expect(listed.toSorted()).toEqual(Object.keys(commands).toSorted());
  });

  it("prints the same text as --help, for a command, a subcommand and a group", async () => {
    for (const args of [["exec"], ["runs", "list"], ["questions"], ["state", "move"], ["trust"]]) {
      const [help, option] = await Promise.all([drover(["help", ...args]), drover([...args, "--help"])]);
      expect(help).toMatchObject({ code: 0, stderr: "" });
      expect(help.stdout).toBe(option.stdout);
      expect(help.stdout).toContain(`drover ${args.join(" ")}`);
    }
  });

  it("prints every group with all its commands and their summaries, and exits with 0", async () => {
    const groups = new Set(Object.keys(commands).flatMap((name) => (name.includes(" ") ? name.split(" ")[0]! : [])));
    for (const group of groups) {
      const [long, short] = await Promise.all([drover([group, "--help"]), drover([group, "-h"])]);
      expect({ group, ...long }).toMatchObject({ group, code: 0, stderr: "" });
      expect({ group, ...short }).toEqual({ group, ...long });
      const lines = long.stdout.split("\n");
      // `trust` and `state` are commands themselves, so their help explains the command.
      const expected = Object.hasOwn(commands, group)
        ? [[`drover ${group}: `, ""]]
        : Object.entries(commands)
            .filter(([name]) => name.startsWith(`${group} `))
            .map(([name, [summary]]) => [`  drover ${name} `, summary]);
      const missing = expected.filter(
        ([start, end]) => !lines.some((line) => line.startsWith(start!) && line.endsWith(end!)),
      );
      expect({ group, missing }).toEqual({ group, missing: [] });
    }
  });

  it("suggests the closest name for an unknown command, subcommand or group", async () => {
    const suggestions = [
      [["help", "exce"], "Unknown command exce. Did you mean exec?"],
      [["help", "runs", "lits"], "Unknown command runs lits. Did you mean runs list?"],
      [["sessions", "shwo", "x"], "Unknown command sessions shwo. Did you mean sessions show?"],
      [["help", "agnets", "list"], "Unknown command agnets. Did you mean agents?"],
    ] as const;
    for (const [args, message] of suggestions) {
      const { code, stderr } = await drover(args);
      expect({ args, code }).toEqual({ args, code: 2 });
      expect(stderr).toContain(message);
    }
  });

  it("never runs the command it explains", async () => {
    const cwd = createDirectory();
    const marker = join(cwd, "marker");
    const { code, stdout } = await drover(["help", "exec", "--", "touch", marker], {
      cwd,
      env: { DROVER_STATE_DIR: join(cwd, "state") },
    });
    expect(code).toBe(0);
    expect(stdout).toContain("drover exec: run one command and record it");
    expect(exists(marker)).toBe(false);
  });
});
