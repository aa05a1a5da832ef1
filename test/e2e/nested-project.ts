import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Run } from "../../src/model/run.ts";
import type { Execution } from "../../src/model/store.ts";
import { bin, drover, createDirectory } from "./drover.ts";

/** The command line as a shell would call it. */
export const droverCommand = `'${process.execPath}' '${bin}'`;

/** A directory with its own state and the agent `script`, which runs the given lines. */
export function createProject(lines: string, uid: number | undefined, profile: object = {}) {
  const cwd = createDirectory(uid);
  const env: Record<string, string> = { DROVER_STATE_DIR: join(cwd, "state"), DROVER_TRUST: cwd };
  for (const name of ["profiles", "agents"]) mkdirSync(join(cwd, name));
  const script = { type: "procedural", agents_dir: "./agents", project_roots: [cwd], ...profile };
  writeFileSync(join(cwd, "profiles", "here.json"), JSON.stringify(script));
  writeFileSync(join(cwd, "agents", "script.yaml"), `name: script\ncommand: sh ${join(cwd, "script.sh")}\n`);
  writeFileSync(join(cwd, "script.sh"), lines);
  for (const name of ["profiles", "agents", "script.sh", "profiles/here.json", "agents/script.yaml"])
    if (uid !== undefined) chownSync(join(cwd, name), uid, uid);
  chmodSync(join(cwd, "script.sh"), 0o755);
  const run = (args: readonly string[], extraEnv: Record<string, string> = {}) =>
    drover(args, { cwd, env: { ...env, ...extraEnv }, ...(uid === undefined ? {} : { uid }) });
  return { cwd, env, uid, run };
}
export type Project = ReturnType<typeof createProject>;

type RecordedRun = Run & { executions: Execution[]; shown: string };

/** Returns everything on record, the newest run first. */
export async function readRecord({ run }: Project): Promise<RecordedRun[]> {
  const runs: RecordedRun[] = [];
  for (const line of (await run(["runs", "list", "--json"])).stdout.trim().split("\n")) {
    const shown = (await run(["runs", "show", JSON.parse(line).run_id, "--json"])).stdout;
    runs.push({ ...JSON.parse(shown), shown });
  }
  return runs;
}

/** Returns the commands that were reported from inside the run, oldest first. */
export function listNestedCommands({ executions }: { executions: Execution[] }) {
  return executions
    .filter(({ start }) => start.reported_by === "command")
    .map(({ start, end }) => [start.command, end?.exit_code ?? (end?.interrupted ? "interrupted" : "open")])
    .toReversed();
}
