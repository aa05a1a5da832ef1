// Text from agents, files and servers is shown at a terminal without its control sequences.
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { openTerminal, terminalTest } from "./at-terminal.ts";
import { drover, createDirectory } from "./drover.ts";

/** Clears the screen, sets the title, writes to the clipboard, and overwrites the line. */
const escapes = "\u001b[2J\u001b]0;owned\u0007\u001b]52;c;b3duZWQ=\u0007\rinstead\u009b1A";
// oxlint-disable-next-line no-control-regex
const controlCharacters = /\u001b(?!\[[\d;]*m)|[\u0000-\u0008\u000b\u000c\u000e-\u001a\u007f-\u009f]|\r(?!\n)/;

function createHostileProject(): { cwd: string; env: Record<string, string> } {
  const cwd = createDirectory();
  for (const name of ["profiles", "agents", "scripts"]) mkdirSync(join(cwd, name));
  writeFileSync(join(cwd, "profiles", "p.json"), JSON.stringify({ type: "procedural", agents_dir: "agents" }));
  writeFileSync(
    join(cwd, "scripts", "fail"),
    `#!/bin/sh\nprintf '%s' "$MESSAGE" >&2\nprintf '${octal(escapes)}' >&2\nexit 3\n`,
  );
  chmodSync(join(cwd, "scripts", "fail"), 0o755);
  writeFileSync(join(cwd, "agents", "fail.json"), JSON.stringify({ name: "fail", command: "scripts/fail" }));
  return { cwd, env: { DROVER_STATE_DIR: join(cwd, "state") } };
}

const octal = (text: string): string =>
  [...Buffer.from(text)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");

async function showAtTerminal(args: string[], project: ReturnType<typeof createHostileProject>): Promise<string> {
  const terminal = openTerminal(args, project);
  await terminal.exitCode;
  return terminal.shown();
}

terminalTest("messages about a run cannot control the terminal", async () => {
  const project = createHostileProject();
  const result = await drover(["run", "fail", "--json"], project);
  const { run_id, error } = JSON.parse(result.stdout) as { run_id: string; error: string };
  expect(error).toContain("\u001b[2J");
  for (const args of [
    ["runs", "events", run_id],
    ["runs", "show", run_id],
    ["runs", "list"],
  ]) {
    const shown = await showAtTerminal(args, project);
    expect(shown, args.join(" ")).toContain(args[1] === "list" ? "fail" : "instead");
    expect(shown, args.join(" ")).not.toMatch(controlCharacters);
  }
});

terminalTest(
  "the final message of `run` and errors that quote a file or argument cannot control the terminal",
  async () => {
    const project = createHostileProject();
    const shown = await showAtTerminal(["run", "fail"], project);
    // Once, from the command itself, whose output is shown byte for byte.
    expect(shown.split("\u001b[2J")).toHaveLength(2);
    writeFileSync(join(project.cwd, "agents", "bad.json"), JSON.stringify({ name: "bad", [`key${escapes}`]: 1 }));
    for (const args of [
      ["runs", "show", "last"],
      ["agents", "check", "agents"],
      ["runs", "show", `no${escapes}`],
      ["run", `no${escapes}`],
    ]) {
      const printed = await showAtTerminal(args, project);
      expect(printed, args[0]).toContain("instead");
      expect(printed, args[0]).not.toMatch(controlCharacters);
    }
  },
);

terminalTest("names of directories, agents and servers cannot control the terminal", async () => {
  const project = createHostileProject();
  const description = `shown${escapes}`;
  writeFileSync(
    join(project.cwd, "agents", "kind.json"),
    JSON.stringify({ name: "kind", description, command: "scripts/fail" }),
  );
  const hostileDirectory = join(project.cwd, `shown${escapes.replaceAll("/", "")}`);
  mkdirSync(hostileDirectory);
  writeFileSync(join(hostileDirectory, "drover.yaml"), "isolation: none\n");
  for (const [args, cwd] of [
    [["exec", "--no-input", "true"], hostileDirectory],
    [["agents", "list"], project.cwd],
    [["agents", "show", "kind"], project.cwd],
    [["trust", hostileDirectory], project.cwd],
    [["trust", "list"], project.cwd],
    [["exec", "--", `./shown${escapes}`], project.cwd],
    [["exec", `--shown${escapes}`], project.cwd],
    [["agents", "check", `shown${escapes}`], project.cwd],
  ] as const) {
    const env = { ...project.env, ...(cwd === hostileDirectory ? { DROVER_TRUST: "" } : {}) };
    const shown = await showAtTerminal([...args], { cwd, env });
    expect(shown, args.join(" ")).toContain("shown");
    expect(shown, args.join(" ")).not.toMatch(controlCharacters);
  }
});
