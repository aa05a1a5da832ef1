import type { Correlation, ExecutionEnd, ExecutionStart } from "../../model/execution.ts";
import { environmentModes, type Isolation, isolationLevels } from "../../model/process.ts";

/** A report of a nested `drover exec` about its command. The outer Drover adds the ids, the owner and `reported_by`. */
export type NestedLine =
  | { id: string; start: Omit<ExecutionStart, "execution_id" | "owner" | "reported_by"> }
  | { id: string; end: Omit<ExecutionEnd, "execution_id" | "interrupted" | "reported_by"> };

/** The sink shortens longer lines. */
export const maxLineBytes = 64 * 1024;

/** Prefixes the id with RUN.ATTEMPT, so that a line cannot name an execution of another run. */
export function toNestedExecutionId(attemptName: string, id: string): string {
  return `${attemptName}.${id}`;
}

/**
 * Parses a line that any program of the run may have written. Returns null if it is not a valid report. Clamps times to
 * the range from `fromMs` to `toMs`.
 */
export function parseNestedLine(text: string, fromMs: number, toMs: number): NestedLine | null {
  const line = toObject(parseJson(text));
  const id = line?.["id"];
  if (!line || typeof id !== "string" || !idPattern.test(id)) return null;
  const clampTime = (value: unknown): string | null => {
    const ms = typeof value === "string" ? Date.parse(value) : Number.NaN;
    return Number.isNaN(ms) ? null : new Date(Math.min(Math.max(ms, fromMs), toMs)).toISOString();
  };
  const start = toObject(line["start"]);
  const end = toObject(line["end"]);
  if (start && !end) {
    const parsed = parseStart(start, clampTime(start["started_at"]));
    return parsed && { id, start: parsed };
  }
  if (!end || start) return null;
  const parsed = parseEnd(end, clampTime(end["ended_at"]), toMs - fromMs);
  return parsed && { id, end: parsed };
}

type Fields = Readonly<Record<string, unknown>>;
type Start = Extract<NestedLine, { start: unknown }>["start"];
type End = Extract<NestedLine, { end: unknown }>["end"];

const idPattern = /^[0-9a-zA-Z-]{8,64}$/;
const signalPattern = /^SIG[A-Z0-9+-]{1,16}$/;
const namePattern = /^[a-z_]{1,40}$/;

function parseStart(fields: Fields, started_at: string | null): Start | null {
  const { command, argv, working_directory } = fields;
  const timeout_ms = countOrNull(fields["timeout_ms"]);
  const correlation = parseCorrelation(toObject(fields["correlation"]) ?? {});
  const limits = parseLimits(fields["limits"]);
  const environment = parseEnvironment(toObject(fields["environment"]));
  if (!isString(command) || !isString(working_directory) || !isStringArray(argv) || argv.length === 0) return null;
  if (started_at === null || timeout_ms === undefined || !correlation || !limits || !environment) return null;
  return { command, argv, working_directory, started_at, timeout_ms, limits, environment, correlation };
}

function parseEnd(fields: Fields, ended_at: string | null, maxMs: number): End | null {
  const exit_code = countOrNull(fields["exit_code"], 255);
  const duration_ms = countOrNull(fields["duration_ms"]);
  const leftovers = countOrNull(fields["leftovers"]);
  const stdout_bytes = countOrNull(fields["stdout_bytes"]);
  const stderr_bytes = countOrNull(fields["stderr_bytes"]);
  const signal = matchOrNull(fields["signal"], signalPattern);
  const stopped = matchOrNull(fields["stopped"], namePattern);
  const isolation = parseIsolation(fields["isolation"]);
  const resources = parseResources(fields["resources"]);
  const error = parseError(fields["error"]);
  const { success, timed_out, truncated } = fields;
  if (ended_at === null || typeof success !== "boolean" || typeof timed_out !== "boolean") return null;
  if (typeof truncated !== "boolean" || exit_code === undefined || duration_ms === undefined) return null;
  if (signal === undefined || stopped === undefined || isolation === undefined) return null;
  if (resources === undefined || error === undefined) return null;
  if (typeof leftovers !== "number" || typeof stdout_bytes !== "number" || typeof stderr_bytes !== "number")
    return null;
  return {
    exit_code,
    signal,
    stopped,
    // Does not trust a success that contradicts the other fields.
    success: success && exit_code === 0 && signal === null && error === null,
    timed_out,
    ended_at,
    duration_ms: duration_ms === null ? null : Math.min(duration_ms, Math.max(0, maxMs)),
    isolation,
    leftovers,
    resources,
    error,
    stdout_bytes,
    stderr_bytes,
    truncated,
  };
}

function parseCorrelation(fields: Fields): Correlation | null {
  const id = (name: keyof Correlation): string | null | undefined => {
    const value = fields[name] ?? null;
    return value === null || (isString(value) && value.length <= 200) ? value : undefined;
  };
  const [session_id, task_id, step_id] = [id("session_id"), id("task_id"), id("step_id")];
  const [tool_call_id, worktree_id, repo_sha] = [id("tool_call_id"), id("worktree_id"), id("repo_sha")];
  if (session_id === undefined || task_id === undefined || step_id === undefined) return null;
  if (tool_call_id === undefined || worktree_id === undefined || repo_sha === undefined) return null;
  return { session_id, task_id, step_id, tool_call_id, worktree_id, repo_sha };
}

function parseLimits(value: unknown): Record<string, number> | null {
  const entries = Object.entries(toObject(value ?? {}) ?? { invalid: null });
  if (entries.length > 20) return null;
  const limits: Record<string, number> = {};
  for (const [name, limit] of entries) {
    const number = countOrNull(limit);
    if (!namePattern.test(name) || typeof number !== "number") return null;
    limits[name] = number;
  }
  return limits;
}

function parseEnvironment(fields: Fields | null): ExecutionStart["environment"] | null {
  const mode = environmentModes.find((known) => known === fields?.["mode"]);
  const { given, withheld } = fields ?? {};
  return mode && isStringArray(given) && isStringArray(withheld) ? { mode, given, withheld } : null;
}

function parseIsolation(value: unknown): Isolation | null | undefined {
  return value === null ? null : isolationLevels.find((level) => level === value);
}

function parseResources(value: unknown): End["resources"] | undefined {
  if (value === null) return null;
  const fields = toObject(value);
  const [user_ms, system_ms, max_rss_kb] = ["user_ms", "system_ms", "max_rss_kb"].map((n) => countOrNull(fields?.[n]));
  if (typeof user_ms !== "number" || typeof system_ms !== "number" || typeof max_rss_kb !== "number") return undefined;
  return { user_ms, system_ms, max_rss_kb };
}

function parseError(value: unknown): End["error"] | undefined {
  if (value === null) return null;
  const { code, message } = toObject(value) ?? {};
  return isString(code) && code.length <= 100 && isString(message) ? { code, message } : undefined;
}

/** Returns undefined if the value is neither null nor a number from 0 to `max`. */
function countOrNull(value: unknown, max = Number.MAX_SAFE_INTEGER): number | null | undefined {
  if (value === null) return null;
  return typeof value === "number" && value >= 0 && value <= max ? value : undefined;
}

function matchOrNull(value: unknown, pattern: RegExp): string | null | undefined {
  if (value === null) return null;
  return typeof value === "string" && pattern.test(value) ? value : undefined;
}

function isString(value: unknown): value is string {
  return typeof value === "string";
}

function isStringArray(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(isString);
}

function toObject(value: unknown): Fields | null {
  // The keys of a JSON object are strings.
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : null;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
