import { access, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { RunFailure } from "../../scaffold/run-failure.ts";
import type { Turn } from "./definition.ts";

/**
 * Returns git settings that disable the filters in the repository's own config. A client that asks git for the state of
 * the repository would otherwise run them, and they are arbitrary commands. The filters are also marked as required, so
 * that git refuses a file instead of adding it unfiltered, for example unencrypted. The operator's filters stay.
 */
export async function disableRepositoryFilters({
  workDir,
  outputLines,
}: Pick<Turn, "workDir" | "outputLines">): Promise<GitSetting[]> {
  // git resolves links before it searches for a repository.
  if (!(await isInRepository(await realpath(workDir)))) return [];
  const lines = await outputLines(["git", "config", "--list", "--show-scope", "--name-only"]);
  const filterKeys = new Set((lines ?? []).flatMap((line) => repositoryFilter.exec(line)?.[1] ?? []));
  const names = [...filterKeys].join("");
  if (names.includes("\uFFFD")) throw unsafeFilters("a filter whose name is not UTF-8");
  // A variable is limited to 128 KB.
  if (names.length > 10_000) throw unsafeFilters("too many filters");
  const requiredKeys = new Set([...filterKeys].map((key) => key.replace(/[^.]*$/, "required")));
  return [
    ...[...filterKeys].map((key): GitSetting => [key, ""]),
    ...[...requiredKeys].map((key): GitSetting => [key, "true"]),
  ];
}

function unsafeFilters(problem: string): RunFailure {
  return new RunFailure(
    "refused",
    `The repository's own git config has ${problem}, which cannot be disabled. Remove it, or trust the repository (trust_project_settings).`,
  );
}

export type GitSetting = readonly [key: string, value: string];

/**
 * Passes each setting both in numbered variables and in the variable of `git -c`, because some programs drop one or the
 * other.
 */
export function toGitVariables(settings: readonly GitSetting[]): Record<string, string> {
  if (settings.length === 0) return {};
  const quote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
  const parameters = settings.map(([key, value]) => `${quote(key)}=${quote(value)}`).join(" ");
  const pairs = settings.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key] as const,
    [`GIT_CONFIG_VALUE_${index}`, value] as const,
  ]);
  return { GIT_CONFIG_COUNT: String(settings.length), GIT_CONFIG_PARAMETERS: parameters, ...Object.fromEntries(pairs) };
}

// A filter's name may contain any character except \n.
const repositoryFilter = /^(?:local|worktree)\t(filter\.[^]*\.(?:clean|smudge|process))$/;

/** Searches the parents too. A directory with a HEAD counts, because it may be a bare repository. */
async function isInRepository(path: string): Promise<boolean> {
  for (const name of [".git", "HEAD"]) if (await exists(join(path, name))) return true;
  return dirname(path) !== path && isInRepository(dirname(path));
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false, // Git could not read it either.
  );
}
