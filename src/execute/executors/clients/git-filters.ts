import { access } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Turn } from "./definition.ts";

/**
 * A client that asks git for the state of the repository has git run the filters which the repository's own config
 * names: commands of whoever made it. Variables that leave those without a command; the operator's own filters stay.
 */
export async function withoutOwnFilters({ workDir, linesOf }: Pick<Turn, "workDir" | "linesOf">) {
  if (!(await isInRepository(workDir))) return {};
  const lines = await linesOf(["git", "config", "--list", "--show-scope", "--name-only"]);
  const own = lines.flatMap((line) => ownFilter.exec(line)?.[1] ?? []);
  const variables = [...new Set(own)].map((key, index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, key.endsWith(".required") ? "false" : ""],
  ]);
  if (variables.length === 0) return {};
  // two for each
  return Object.fromEntries([["GIT_CONFIG_COUNT", String(variables.length)], ...variables.flat()]) as Record<
    string,
    string
  >;
}

const ownFilter = /^(?:local|worktree)\t(filter\..*\.(?:clean|smudge|process|required))$/;

async function isInRepository(path: string): Promise<boolean> {
  const found = await access(join(path, ".git")).then(
    () => true,
    () => false, // not there, or not to be seen by git either
  );
  return found || (dirname(path) !== path && isInRepository(dirname(path)));
}
