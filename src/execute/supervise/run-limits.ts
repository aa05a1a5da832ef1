import type { Agent } from "../../model/agent.ts";
import type { Limits } from "../../model/process.ts";
import type { DiskLimits } from "../../process/disk-usage-watch.ts";

export interface TimeLimits {
  /** From the profile. */
  timeout_seconds?: number | undefined;
  idle_timeout_seconds?: number | undefined;
  /** From JOB_TIMEOUT_SECONDS. */
  jobTimeoutSeconds?: number | undefined;
  defaultTimeoutSeconds?: number | undefined;
}

/** Precedence: run (already merged into the agent), agent, profile, environment, default. */
export function timeoutMsOf(agent: Agent, limits: TimeLimits): number {
  const fallback = agent.type === "autonomous" ? 3600 : (limits.defaultTimeoutSeconds ?? 300);
  return 1000 * (agent.timeout_seconds ?? limits.timeout_seconds ?? limits.jobTimeoutSeconds ?? fallback);
}

/** null if the run may be silent for any time, as commands may by default. */
export function idleMsOf(agent: Agent, limits: TimeLimits): number | null {
  const seconds =
    agent.idle_timeout_seconds ?? limits.idle_timeout_seconds ?? (agent.type === "autonomous" ? 600 : null);
  return seconds === null ? null : seconds * 1000;
}

/** `ofCommands` apply to each program separately, `held` to the run as a whole. */
export function limitsOf({ limits = {} }: Agent): { ofCommands: Limits; held: DiskLimits } {
  const given = <K extends keyof Limits>(name: K, value: number | undefined): { [name in K]?: number } =>
    // an object with this one key
    (value === undefined ? {} : { [name]: value }) as { [name in K]?: number };
  return {
    ofCommands: {
      ...given("cpuSeconds", limits.cpu_seconds),
      ...given("memoryBytes", limits.memory_bytes),
      ...given("processes", limits.processes),
      ...given("openFiles", limits.open_files),
      ...given("fileSizeBytes", limits.file_size_bytes),
    },
    held: { ...given("diskBytes", limits.disk_bytes), ...given("files", limits.files) },
  };
}
