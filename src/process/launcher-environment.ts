import type { LaunchMethod } from "./launch-method-selector.ts";

/** The launcher that starts the command removes this prefix; see `-u` in native/README.md. */
const prefix = "DROVER_KEEP_";

/**
 * The environment for the programs that start the command. Variables that control the loader, libc or perl would load the
 * command's code into bwrap or perl, which run before its isolation is complete. They are passed under other names, and
 * the last launcher renames them back. PERL_BADLANG keeps perl from printing locale warnings to the command's stderr.
 */
export function buildLauncherEnvironment(
  { kind }: LaunchMethod,
  environment: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  if (kind === "plain") return environment;
  const variables = Object.entries(environment).map(([name, value]) => [
    controlsLaunchers(name) ? prefix + name : name,
    value,
  ]);
  return Object.fromEntries(kind === "perl" ? [...variables, ["PERL_BADLANG", "0"]] : variables);
}

function controlsLaunchers(name: string): boolean {
  return names.has(name) || prefixes.some((start) => name.startsWith(start));
}

// The list includes our own prefix, so that the launcher removes only the prefixes that were added here.
const prefixes = ["LD_", "DYLD_", "GLIBC_", "LIBC_", "MALLOC_", "MUSL_", "PERL", prefix];

// The variables that glibc removes for set-uid programs, and those that select message catalogs and their character
// set.
const names = new Set([
  "GCONV_PATH",
  "GETCONF_DIR",
  "HOSTALIASES",
  "LANGUAGE",
  "LOCALDOMAIN",
  "LOCPATH",
  "NIS_PATH",
  "NLSPATH",
  "OUTPUT_CHARSET",
  "RESOLV_HOST_CONF",
  "RES_OPTIONS",
  "TZ",
  "TZDIR",
]);
