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
export function chooseTimeoutMs(agent: Agent, limits: TimeLimits): number {
  const fallback = agent.type === "autonomous" ? 3600 : (limits.defaultTimeoutSeconds ?? 300);
  return 1000 * (agent.timeout_seconds ?? limits.timeout_seconds ?? limits.jobTimeoutSeconds ?? fallback);
}

/** Returns null if there is no idle timeout, which is the default for commands. */
export function chooseIdleMs(agent: Agent, limits: TimeLimits): number | null {
  const seconds =
    agent.idle_timeout_seconds ?? limits.idle_timeout_seconds ?? (agent.type === "autonomous" ? 600 : null);
  return seconds === null ? null : seconds * 1000;
}

/** `perCommand` limits apply to each program separately, `perRun` limits to the run as a whole. */
export function splitLimits({ limits = {} }: Agent): { perCommand: Limits; perRun: DiskLimits } {
  const optional = <K extends keyof Limits>(name: K, value: number | undefined): { [name in K]?: number } =>
    // The compiler does not know that this object has exactly this key.
    (value === undefined ? {} : { [name]: value }) as { [name in K]?: number };
  return {
    perCommand: {
      ...optional("cpuSeconds", limits.cpu_seconds),
      ...optional("memoryBytes", limits.memory_bytes),
      ...optional("processes", limits.processes),
      ...optional("openFiles", limits.open_files),
      ...optional("fileSizeBytes", limits.file_size_bytes),
    },
    perRun: { ...optional("diskBytes", limits.disk_bytes), ...optional("files", limits.files) },
  };
}
