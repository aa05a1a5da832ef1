import { constants, promises } from "node:fs";
import { monotonicMs } from "../model/clock.ts";
import type { Command, CommandFault, DiskUsage, Limits, StartOptions } from "../model/process.ts";
import { limitExceeded, limitMissing } from "./faults.ts";
import { measureDiskUsage } from "./disk-usage.ts";
import { setLongTimeout } from "./set-long-timeout.ts";

/** Limits that the kernel does not enforce. Drover checks them itself. */
export type DiskLimits = Pick<Limits, "diskBytes" | "files">;

export interface MeasuredDirectories {
  roots: readonly string[];
  excluded: readonly string[];
}

export interface WatchOptions extends MeasuredDirectories {
  limits: DiskLimits;
  /** The usage before the start, which is not counted. */
  initialUsage: DiskUsage;
  /** Called at most once. The watch then ends. */
  onFault: (fault: CommandFault) => void;
  /** Names in the message what exceeded the limit. */
  subject?: "command" | "run";
}

export interface DiskUsageWatch {
  stop(): void;
  /**
   * Checks once more, in case the command was faster than the watch. Returns null if the usage is within the limits, or if
   * the check is aborted or takes more than five seconds.
   */
  finalCheck(signal: AbortSignal): Promise<CommandFault | null>;
}

const minPauseMs = 100;
/** The pause between checks as a multiple of their CPU time, so that checks use at most a tenth of a core. */
const pauseFactor = 9;
const finalCheckMs = 5000;
/** Failures in a row before one is reported. A single check can fail temporarily, for example without free descriptors. */
const maxFailures = 3;

export function watchDiskUsage(options: WatchOptions): DiskUsageWatch {
  const { limits, roots, excluded, initialUsage, onFault, subject = "command" } = options;
  const stopController = new AbortController();
  let failures = 0;
  let cancel = setLongTimeout(minPauseMs, () => void recheck());

  const check = async (signal: AbortSignal): Promise<CommandFault | null> => {
    const isEnough = (usage: DiskUsage): boolean => findExceeded(usage, initialUsage, limits) !== null;
    const withBytes = limits.diskBytes !== undefined;
    const usage = await measureDiskUsage({ roots, excluded, withBytes, isEnough, signal });
    const exceeded = findExceeded(usage, initialUsage, limits);
    return exceeded && limitExceeded(exceeded.limit, limits[exceeded.limit], { actual: exceeded.actual, subject });
  };
  const recheck = async (): Promise<void> => {
    const checkStart = { ms: monotonicMs(), cpu: process.cpuUsage() };
    let fault: CommandFault | null = null;
    try {
      fault = await check(stopController.signal);
      failures = 0;
    } catch (error) {
      failures += 1;
      if (failures === maxFailures) fault = cannotMeasure(limits, roots, error);
    }
    if (stopController.signal.aborted) return;
    if (fault !== null) onFault(fault);
    else cancel = setLongTimeout(pauseAfter(checkStart), () => void recheck());
  };
  const stop = (): void => {
    stopController.abort();
    cancel();
  };
  return {
    stop,
    async finalCheck(signal) {
      stop();
      try {
        return await check(AbortSignal.any([signal, AbortSignal.timeout(finalCheckMs)]));
      } catch (error) {
        return cannotMeasure(limits, roots, error);
      }
    },
  };
}

/** Returns null if the command has no disk limit. */
export function watchCommandDiskUsage(
  { limits, workingDirectory }: Command,
  { uncounted }: StartOptions,
  onFault: WatchOptions["onFault"],
): DiskUsageWatch | null {
  if (!hasDiskLimit(limits)) return null;
  return watchDiskUsage({
    limits,
    roots: [workingDirectory ?? process.cwd()],
    excluded: uncounted?.folders ?? [],
    initialUsage: uncounted?.before ?? noUsage,
    onFault,
  });
}

export type InitialUsage = { ok: true; usage: DiskUsage } | { ok: false; fault: CommandFault };

/** Measures the usage before the start. Fails if a directory cannot be read, because its limit could not be checked. */
export async function measureInitialUsage(
  { roots, excluded }: MeasuredDirectories,
  limits: DiskLimits,
  signal: AbortSignal,
): Promise<InitialUsage> {
  try {
    for (const root of roots) await promises.access(root, constants.R_OK | constants.X_OK);
    const withBytes = limits.diskBytes !== undefined;
    return { ok: true, usage: await measureDiskUsage({ roots, excluded, withBytes, isEnough: () => false, signal }) };
  } catch (error) {
    return { ok: false, fault: cannotMeasure(limits, roots, error) };
  }
}

/** Adds the current usage of the working directory to the options, if the command has a disk limit. */
export async function addInitialUsage<T extends Pick<StartOptions, "uncounted">>(
  { limits, workingDirectory = process.cwd() }: Command,
  options: T,
  signal: AbortSignal,
): Promise<T | { fault: CommandFault }> {
  const { uncounted } = options;
  if (!hasDiskLimit(limits) || uncounted?.before !== undefined) return options;
  const directories = { roots: [workingDirectory], excluded: uncounted?.folders ?? [] };
  const result = await measureInitialUsage(directories, limits, signal);
  return result.ok ? { ...options, uncounted: { ...uncounted, before: result.usage } } : { fault: result.fault };
}

const noUsage: DiskUsage = { bytes: 0, files: 0 };

function hasDiskLimit(limits: Limits | undefined): limits is Limits {
  return limits?.diskBytes !== undefined || limits?.files !== undefined;
}

function findExceeded(
  usage: DiskUsage,
  initialUsage: DiskUsage,
  { diskBytes, files }: DiskLimits,
): { limit: keyof DiskLimits; actual: number } | null {
  const addedBytes = usage.bytes - initialUsage.bytes;
  if (diskBytes !== undefined && addedBytes > diskBytes) return { limit: "diskBytes", actual: addedBytes };
  const addedFiles = usage.files - initialUsage.files;
  if (files !== undefined && addedFiles > files) return { limit: "files", actual: addedFiles };
  return null;
}

/** The pause depends mainly on the CPU time of the check, not on the speed of the disk. It is never shorter than the check. */
function pauseAfter(checkStart: { ms: number; cpu: NodeJS.CpuUsage }): number {
  const { user, system } = process.cpuUsage(checkStart.cpu);
  return Math.max(minPauseMs, ((user + system) / 1000) * pauseFactor, monotonicMs() - checkStart.ms);
}

function cannotMeasure(limits: DiskLimits, roots: readonly string[], error: unknown): CommandFault {
  const reason = error instanceof Error && "code" in error ? String(error.code) : String(error);
  return limitMissing(
    limits.diskBytes === undefined ? "files" : "diskBytes",
    `${roots.join(" and ")} cannot be read (${reason})`,
  );
}
