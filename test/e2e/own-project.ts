import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { drover, folder, type Ran } from "./drover.ts";

/** A repository, and a user who has a home of their own. */
export function project(name = "app") {
  const top = folder();
  const [home, cwd] = [join(top, "home"), join(top, name)];
  mkdirSync(home);
  execFileSync("git", ["init", "-q", cwd]);
  const at = (where: string, ...words: string[]): Promise<Ran> =>
    drover(words, { cwd: where, env: { HOME: home, DROVER_TRUST: "" } });
  const run = (...words: string[]): Promise<Ran> => at(cwd, ...words);
  const state = async (): Promise<string> =>
    JSON.parse((await run("state", "--json")).stdout).state_directory as string;
  return { top, home, cwd, at, run, state };
}

/** The number of audit rows, or NaN if the record is not intact. */
export const rows = ({ stdout }: Ran): number => Number(/intact: (\d+) rows/.exec(stdout)?.[1] ?? Number.NaN);
