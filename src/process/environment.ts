import type { EnvironmentMode, EnvironmentOptions } from "../model/process.ts";
import { looksSecret } from "../model/secret-names.ts";

export interface EnvironmentRequest {
  options?: EnvironmentOptions | undefined;
  /** The source environment for `merge` and `inherit`. */
  parent: Readonly<Record<string, string | undefined>>;
  /** The command's own variables, always passed. */
  given?: Readonly<Record<string, string>> | undefined;
  /** DROVER_* ids, always passed. They override all other variables. */
  ids?: Readonly<Record<string, string>> | undefined;
}

export interface BuiltEnvironment {
  environment: Record<string, string>;
  /** Names that a user may miss in the child. With `merge`, which passes few variables anyway, only denied ones. */
  withheld: string[];
}

/** Builds the child's environment. Deny overrides allow, and given variables and ids override both. */
export function buildEnvironment({ options, parent, given, ids }: EnvironmentRequest): BuiltEnvironment {
  const mode = options?.mode ?? "merge";
  const environment: Record<string, string> = {};
  const withheld: string[] = [];
  if (mode !== "replace") {
    for (const name in parent) {
      // a nested Drover reports to the outer one and must not learn where that keeps its record
      if (name === "DROVER_STATE_DIR") continue;
      const told = mode === "inherit" || matches(options?.deny, name);
      // each read of process.env is a system call, so read only the values that pass
      if (passes(name, mode, options)) put(environment, name, parent[name]);
      else if (told && given?.[name] === undefined) withheld.push(name);
    }
  }
  for (const name in given) put(environment, name, given[name]);
  for (const name in ids) put(environment, name, ids[name]);
  return { environment, withheld };
}

function put(environment: Record<string, string>, name: string, value: string | undefined): void {
  if (value === undefined) return;
  if (name !== "__proto__") environment[name] = value;
  else Object.defineProperty(environment, name, { value, enumerable: true, configurable: true, writable: true });
}

function passes(
  name: string,
  mode: Exclude<EnvironmentMode, "replace">,
  options: EnvironmentOptions | undefined,
): boolean {
  if (matches(options?.deny, name)) return false;
  if (matches(options?.allow, name)) return true;
  if (mode === "merge") return inBase(name);
  return !isLoaderHook(name) && !looksSecret(name);
}

/** Variables that nearly every program needs to find its files, talk to its user and reach the network. */
function inBase(name: string): boolean {
  return base.has(name) || name.startsWith("LC_");
}

/** Variables that can run code inside the child or change what it loads. */
export function isLoaderHook(name: string): boolean {
  // bash takes functions from names like BASH_FUNC_x%%
  return (
    loaderHooks.has(name) ||
    name.startsWith("LD_") ||
    name.startsWith("DYLD_") ||
    name.startsWith("BASH_FUNC_") ||
    name.startsWith("GIT_CONFIG_")
  );
}

/** A trailing `*` matches a prefix. */
function matches(patterns: readonly string[] | undefined, name: string): boolean {
  if (patterns === undefined) return false;
  return patterns.some((pattern) => (pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : pattern === name));
}

const base = new Set([
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

const loaderHooks = new Set([
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
