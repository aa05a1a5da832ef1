import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isTrusted } from "../define/trust.ts";
import { RequestError } from "../model/errors.ts";
import type { ProviderHost } from "./definition.ts";
import { importModule } from "./import-module.ts";

export interface OptionalPackage {
  name: string;
  /** The version that Drover is tested with. */
  version: string;
}

/** Where packages are looked for, and who has trusted those of a folder. */
export type PackageHost = Pick<ProviderHost, "directory" | "env">;

/** Where the package is, or null: in the runner's directory first, if that is trusted, then beside Drover. */
export function findPackage({ name }: OptionalPackage, { directory, env }: PackageHost): string | null {
  // A CommonJS bundle has __dirname and no import.meta.dirname; the source tree has it the other way round.
  const here = typeof __dirname === "string" ? __dirname : import.meta.dirname;
  // a package is code that runs inside Drover
  for (const folder of isTrusted(directory, env) ? [directory, here] : [here])
    try {
      return createRequire(join(folder, "package.json")).resolve(name);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "MODULE_NOT_FOUND")) throw error;
    }
  return null;
}

/** What to say where a package is not there, and what to do about it; null where it is. */
export function missingPackage(wanted: OptionalPackage, host: PackageHost): { message: string; next: string } | null {
  if (findPackage(wanted, host) !== null) return null;
  return {
    message: `it needs the package ${wanted.name}, which is not installed`,
    next: `Run \`npm install ${wanted.name}@${wanted.version}\` in ${host.directory}${isTrusted(host.directory, host.env) ? "" : `, and trust that folder: drover trust ${host.directory}`}.`,
  };
}

/** Loads a package that Drover does not install by itself. The caller knows what it exports. */
export async function loadPackage<T>(wanted: OptionalPackage, host: PackageHost, neededBy: string): Promise<T> {
  const missing = missingPackage(wanted, host);
  if (missing === null) return (await importModule(pathToFileURL(findPackage(wanted, host)!).href)) as T;
  throw new RequestError({
    code: "DROVER-LLM-006",
    field: "provider",
    message: `${neededBy} needs the package ${wanted.name}, which is not installed.`,
    next: missing.next,
  });
}
