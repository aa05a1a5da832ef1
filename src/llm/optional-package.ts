import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { findPackageRoot } from "../define/package-directory.ts";
import { isTrusted } from "../define/trust.ts";
import { RequestError } from "../model/errors.ts";
import type { ProviderHost } from "./definition.ts";
import { importModule } from "./import-module.ts";

export interface OptionalPackage {
  name: string;
  /** The version that Drover is tested with. */
  version: string;
}

/** The runner's directory, and the variables that determine which directories are trusted. */
export type PackageHost = Pick<ProviderHost, "directory" | "env">;

/** Returns the package's path or null. Searches the runner's directory first, if it is trusted, then Drover's own. */
export function findPackage({ name }: OptionalPackage, { directory, env }: PackageHost): string | null {
  // A CommonJS bundle has only __dirname; an ES module has only import.meta.dirname.
  const droverDirectory = typeof __dirname === "string" ? __dirname : import.meta.dirname;
  // Search only trusted directories, because a package's code runs inside Drover.
  for (const base of isTrusted(directory, env) ? [directory, droverDirectory] : [droverDirectory])
    try {
      return createRequire(join(base, "package.json")).resolve(name);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "MODULE_NOT_FOUND")) throw error;
    }
  return null;
}

/** Returns a message about a missing package and how to install it; null if it is installed. */
export function describeMissingPackage(
  required: OptionalPackage,
  host: PackageHost,
): { message: string; next: string } | null {
  if (findPackage(required, host) !== null) return null;
  const drover = findPackageRoot();
  // npm installs into Drover's own directory for the profiles that come with it; that directory needs no trust.
  const isOwn = drover !== null && `${host.directory}/`.startsWith(`${drover}/`);
  const directory = isOwn ? drover : host.directory;
  const trust = isOwn || isTrusted(directory, host.env) ? "" : `, and trust that directory: drover trust ${directory}`;
  return {
    message: `it needs the package ${required.name}, which is not installed`,
    next: `Run \`npm install ${required.name}@${required.version}\` in ${directory}${trust}.`,
  };
}

/** Loads a package that Drover does not install. The caller states the type of its exports. */
export async function loadPackage<T>(required: OptionalPackage, host: PackageHost, neededBy: string): Promise<T> {
  const missing = describeMissingPackage(required, host);
  if (missing === null) return (await importModule(pathToFileURL(findPackage(required, host)!).href)) as T;
  throw new RequestError({
    code: "DROVER-LLM-006",
    field: "provider",
    message: `${neededBy} needs the package ${required.name}, which is not installed.`,
    next: missing.next,
  });
}
