import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { drover, createDirectory, type CommandResult } from "./drover.ts";

/** Creates a repository and a user with their own HOME. */
export function createProject(name = "app") {
  const top = createDirectory();
  const [home, cwd] = [join(top, "home"), join(top, name)];
  mkdirSync(home);
  execFileSync("git", ["init", "-q", cwd]);
  const runIn = (where: string, ...args: string[]): Promise<CommandResult> =>
    drover(args, { cwd: where, env: { HOME: home, DROVER_TRUST: "" } });
  const run = (...args: string[]): Promise<CommandResult> => runIn(cwd, ...args);
  const findStateDirectory = async (): Promise<string> =>
    JSON.parse((await run("state", "--json")).stdout).state_directory as string;
  return { top, home, cwd, runIn, run, findStateDirectory };
}

/** Returns the number of audit rows, or NaN if the record is not intact. */
export const countAuditRows = ({ stdout }: CommandResult): number =>
  Number(/intact: (\d+) rows/.exec(stdout)?.[1] ?? Number.NaN);
