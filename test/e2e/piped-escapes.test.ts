// Text in a pipe or file may be shown at a terminal later, so text for people contains no control sequences there
// either.
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { drover, createDirectory } from "./drover.ts";

/** File names can contain every character except a slash and NUL. */
const hostile: Record<string, string> = {
  csi: "\u001b[2J\u001b[1A",
  "osc 52": "\u001b]52;c;b3duZWQ=\u0007",
  "osc 8": "\u001b]8;;x:y\u001b\\text\u001b]8;;\u001b\\",
  dcs: "\u001bP$q q\u001b\\",
  c1: "\u009b2J\u009d0;owned\u009c",
  bidi: "\u202eexe.\u2066\u2069\u200f",
  "carriage return": "\rinstead",
  backspace: "\u0008\u0008\u0008\u007f",
  bell: "\u0007",
  reset: "\u001bc",
  colour: "\u001b[31m\u001b[8m",
  long: "\u001b[A".repeat(40),
};
// oxlint-disable-next-line no-control-regex
const controlCharacters = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]|\p{Bidi_Control}/u;

/** Creates files and definitions with all of these characters in their names, and one whose name is not UTF-8. */
function createHostileProject() {
  const home = createDirectory();
  const cwd = join(home, `place${Object.values(hostile).join("")}`);
  for (const name of ["agents", "profiles"]) mkdirSync(join(cwd, name), { recursive: true });
  writeFileSync(join(cwd, "drover.yaml"), "{}\n");
  for (const escapes of Object.values(hostile)) {
    const agent = JSON.stringify({ name: "x", [`key${escapes}`]: 1 });
    writeFileSync(join(cwd, "agents", `agent${escapes}.json`), agent);
    writeFileSync(join(cwd, "profiles", `profile${escapes}.json`), "{");
  }
  writeFileSync(
    Buffer.concat([Buffer.from(`${cwd}/agents/`), Buffer.from([0x9b, 0xff, 0xc2]), Buffer.from(".json")]),
    "{",
  );
  return { cwd, env: { HOME: home, XDG_CONFIG_HOME: join(home, "config"), XDG_STATE_HOME: join(home, "state") } };
}

test.each([
  [["trust"], "place"],
  [["trust", "list"], "place"],
  [["state"], "place"],
  [["doctor"], "place"],
  [["agents", "check"], "agent"],
  [["agents", "list"], ""],
  [["run", `agent${hostile["c1"]}`], "agent"],
  [["exec", "--spec", `spec${hostile["bidi"]}`], "spec"],
  [["trust", "revoke"], "place"],
])("%j prints no control sequences from names of files, directories and arguments", async (args, shown) => {
  const project = createHostileProject();
  if (args[0] !== "trust" || args.length > 1) await drover(["trust", "--quiet"], project);
  for (const json of [[], ["--json"]]) {
    const { stdout, stderr } = await drover([...args, ...json], project);
    expect(stdout + stderr).toContain(shown);
    expect(stdout + stderr).not.toMatch(controlCharacters);
  }
});

test("strips control characters from messages in a pipe, escapes them in JSON, and leaves the command's output unchanged", async () => {
  const cwd = createDirectory();
  const project = { cwd, env: { DROVER_STATE_DIR: join(cwd, "state") } };
  const words = Object.values(hostile).join("");
  for (const name of ["agents", "profiles"]) mkdirSync(join(cwd, name));
  writeFileSync(join(cwd, "profiles", "p.json"), JSON.stringify({ type: "procedural", agents_dir: "agents" }));
  const script = join(cwd, "fail");
  writeFileSync(script, `#!/bin/sh\ncat "$0.txt"\ncat "$0.txt" >&2\nexit 3\n`);
  writeFileSync(`${script}.txt`, words);
  chmodSync(script, 0o755);
  writeFileSync(join(cwd, "agents", "fail.json"), JSON.stringify({ name: "fail", command: "fail" }));
  const result = await drover(["run", "fail", "--json"], project);
  const { run_id, error } = JSON.parse(result.stdout) as { run_id: string; error: string };
  expect(error).toContain("\u009b2J");
  expect(result.stdout).not.toMatch(controlCharacters);
  const events = await drover(["runs", "events", run_id], project);
  expect(events.stdout).toContain("instead");
  expect(events.stdout).not.toMatch(controlCharacters);
  expect((await drover(["runs", "show", run_id], project)).stdout).toContain(words);
  expect((await drover(["audit", "export"], project)).stdout).not.toMatch(controlCharacters);
});
