import { access, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { RunFailure } from "../../scaffold/run-failure.ts";
import type { Turn } from "./definition.ts";

/**
 * A client that asks git for the state of the repository has git run the filters which the repository's own config
 * names: commands of whoever made it. Settings for git that leave those without a command and make them required, so
 * that git refuses a file it would otherwise take unfiltered, as with one to be encrypted. The operator's own stay.
 */
export async function ownFiltersOff({ workDir, linesOf }: Pick<Turn, "workDir" | "linesOf">): Promise<GitSetting[]> {
  // git looks from where it really is
  if (!(await isInRepository(await realpath(workDir)))) return [];
  const lines = await linesOf(["git", "config", "--list", "--show-scope", "--name-only"]);
  const own = new Set((lines ?? []).flatMap((line) => ownFilter.exec(line)?.[1] ?? []));
  const names = [...own].join("");
  if (names.includes("\uFFFD")) throw refusal("a filter whose name is not UTF-8");
  // a variable has an end, at 128 KB
  if (names.length > 10_000) throw refusal("too many filters");
  const required = new Set([...own].map((key) => key.replace(/[^.]*$/, "required")));
  return [...[...own].map((key): GitSetting => [key, ""]), ...[...required].map((key): GitSetting => [key, "true"])];
}

function refusal(what: string): RunFailure {
  return new RunFailure(
    "refused",
    `The repository's own git config has ${what}, which cannot be switched off. Take it out, or trust the repository (trust_project_settings).`,
  );
}

export type GitSetting = readonly [key: string, value: string];

/** Twice: one by one, as git documents it, and in the one variable that `git -c` uses. Programs drop the one or the other. */
export function gitVariables(settings: readonly GitSetting[]): Record<string, string> {
  if (settings.length === 0) return {};
  const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
  const all = settings.map(([key, value]) => `${quoted(key)}=${quoted(value)}`).join(" ");
  const pairs = settings.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key] as const,
    [`GIT_CONFIG_VALUE_${index}`, value] as const,
  ]);
  return { GIT_CONFIG_COUNT: String(settings.length), GIT_CONFIG_PARAMETERS: all, ...Object.fromEntries(pairs) };
}

// a name may hold anything but the end of a line, and for git that is \n alone
const ownFilter = /^(?:local|worktree)\t(filter\.[^]*\.(?:clean|smudge|process))$/;

/** Also where the directory is a repository without a `.git`, as git sees one in its HEAD. */
async function isInRepository(path: string): Promise<boolean> {
  for (const name of [".git", "HEAD"]) if (await isThere(join(path, name))) return true;
  return dirname(path) !== path && isInRepository(dirname(path));
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false, // or not to be seen by git either
  );
}
