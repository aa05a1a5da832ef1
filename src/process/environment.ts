import type { EnvironmentMode, EnvironmentOptions } from "../model/process.ts";
import { looksSecret } from "../model/secret-names.ts";

export interface EnvironmentRequest {
  options?: EnvironmentOptions | undefined;
  /** The source environment for `merge` and `inherit`. */
  parent: Readonly<Record<string, string | undefined>>;
  /** The command's own variables, which are always passed. */
  variables?: Readonly<Record<string, string>> | undefined;
  /** DROVER_* variables, which are always passed. They override all other variables. */
  ids?: Readonly<Record<string, string>> | undefined;
}

export interface BuiltEnvironment {
  environment: Record<string, string>;
  /**
   * Names of variables that were not passed although a user may expect them: with `inherit`, all that were not passed;
   * with `merge`, which passes few variables, only denied ones.
   */
  withheld: string[];
}

/** Builds the child's environment. Deny overrides allow; the command's own variables and ids override both. */
export function buildEnvironment({ options, parent, variables, ids }: EnvironmentRequest): BuiltEnvironment {
  const mode = options?.mode ?? "merge";
  const environment: Record<string, string> = {};
  const withheld: string[] = [];
  if (mode !== "replace") {
    for (const name in parent) {
      // A nested Drover reports to the outer one and must not learn the location of its record.
      if (name === "DROVER_STATE_DIR") continue;
      const isReported = mode === "inherit" || matches(options?.deny, name);
      // Each read of process.env calls native code, so read only the values that are passed on.
      if (isPassed(name, mode, options)) setVariable(environment, name, parent[name]);
      else if (isReported && variables?.[name] === undefined) withheld.push(name);
    }
  }
  for (const name in variables) setVariable(environment, name, variables[name]);
  for (const name in ids) setVariable(environment, name, ids[name]);
  return { environment, withheld };
}

/** The value that a child gets from the source environment if the command does not set the variable itself. */
export function findInheritedVariable(
  name: string,
  { options, parent }: Pick<EnvironmentRequest, "options" | "parent">,
): string | undefined {
  const mode = options?.mode ?? "merge";
  return mode !== "replace" && isPassed(name, mode, options) ? parent[name] : undefined;
}

function setVariable(environment: Record<string, string>, name: string, value: string | undefined): void {
  if (value === undefined) return;
  if (name !== "__proto__") environment[name] = value;
  else Object.defineProperty(environment, name, { value, enumerable: true, configurable: true, writable: true });
}

function isPassed(
  name: string,
  mode: Exclude<EnvironmentMode, "replace">,
  options: EnvironmentOptions | undefined,
): boolean {
  if (matches(options?.deny, name)) return false;
  if (matches(options?.allow, name)) return true;
  if (mode === "merge") return isBaseVariable(name);
  return !canRunCode(name) && !looksSecret(name);
}

/** Variables that nearly every program needs to find its files, talk to its user and reach the network. */
function isBaseVariable(name: string): boolean {
  return baseVariables.has(name) || name.startsWith("LC_");
}

/** Variables that can run code inside the child or change what it loads. */
export function canRunCode(name: string): boolean {
  // Bash reads functions from names like BASH_FUNC_x%%.
  return (
    codeRunningVariables.has(name) ||
    name.startsWith("LD_") ||
    name.startsWith("DYLD_") ||
    name.startsWith("BASH_FUNC_") ||
    name.startsWith("GIT_CONFIG_")
  );
}

/** A pattern that ends with `*` matches every name that starts with the rest. */
function matches(patterns: readonly string[] | undefined, name: string): boolean {
  if (patterns === undefined) return false;
  return patterns.some((pattern) => (pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : pattern === name));
}

const baseVariables = new Set([
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "LANG",
  "LANGUAGE",
  "TERM",
  "COLORTERM",
  "NO_COLOR",
  "TMPDIR",
  "TZ",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "ALL_PROXY",
  "NO_PROXY",
  "http_proxy",
  "https_proxy",
  "all_proxy",
  "no_proxy",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "CURL_CA_BUNDLE",
  "REQUESTS_CA_BUNDLE",
  "NODE_EXTRA_CA_CERTS",
  "GIT_SSL_CAINFO",
]);

const codeRunningVariables = new Set([
  "NODE_OPTIONS",
  "NODE_PATH",
  "NODE_REPL_EXTERNAL_MODULE",
  "PYTHONSTARTUP",
  "PYTHONPATH",
  "PYTHONHOME",
  "PYTHONINSPECT",
  "PYTHONBREAKPOINT",
  "PERL5OPT",
  "PERL5LIB",
  "PERL5DB",
  "PERLLIB",
  "RUBYOPT",
  "RUBYLIB",
  "BASH_ENV",
  "ENV",
  "SHELLOPTS",
  "BASHOPTS",
  "PS4",
  "PROMPT_COMMAND",
  "ZDOTDIR",
  "JAVA_TOOL_OPTIONS",
  "_JAVA_OPTIONS",
  "JDK_JAVA_OPTIONS",
  "CLASSPATH",
  "PHPRC",
  "PHP_INI_SCAN_DIR",
  "LUA_INIT",
  "LUA_PATH",
  "LUA_CPATH",
  "GCONV_PATH",
  "GETCONF_DIR",
  "GLIBC_TUNABLES",
  "OPENSSL_CONF",
  "OPENSSL_ENGINES",
  "OPENSSL_MODULES",
  "GIT_EXEC_PATH",
  "GIT_TEMPLATE_DIR",
  "GIT_SSH",
  "GIT_SSH_COMMAND",
  "GIT_PROXY_COMMAND",
  "GIT_EXTERNAL_DIFF",
  "GIT_ASKPASS",
  "GIT_EDITOR",
  "GIT_SEQUENCE_EDITOR",
  "GIT_PAGER",
  "SSH_ASKPASS",
  "LESSOPEN",
  "LESSCLOSE",
]);
