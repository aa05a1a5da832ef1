import { constants, promises } from "node:fs";
import { monotonicMs } from "../model/clock.ts";
import type { Command, CommandFault, DiskUsage, Limits, StartOptions } from "../model/process.ts";
import { limitExceeded, limitMissing } from "./faults.ts";
import { measureDiskUsage } from "./disk-usage.ts";
import { afterMs } from "./timer.ts";

/** The limits that the kernel does not enforce, so Drover checks them. */
export type DiskLimits = Pick<Limits, "diskBytes" | "files">;

export interface MeasuredDirectories {
  roots: readonly string[];
  except: readonly string[];
}

export interface WatchOptions extends MeasuredDirectories {
  limits: DiskLimits;
  /** The usage before the start, which is not counted. */
  before: DiskUsage;
  /** Called once. The watch then ends. */
  onFault: (fault: CommandFault) => void;
  whose?: "command" | "run";
}

export interface DiskUsageWatch {
  stop(): void;
  /** A final check, in case the command was faster than the watch. null: within the limits, or not checked in time. */
  finalCheck(signal: AbortSignal): Promise<CommandFault | null>;
}

const minPauseMs = 100;
/** Pause between checks, as a multiple of their CPU time. Checks thus use at most a tenth of a core, however large the tree. */
const pauseFactor = 9;
const finalCheckMs = 5000;
/** A single check may fail by chance, for example without free descriptors. This many failures in a row are reported. */
const maxFailures = 3;

export function watchDiskUsage(options: WatchOptions): DiskUsageWatch {
  const { limits, roots, except, before, onFault, whose = "command" } = options;
  const ending = new AbortController();
  let failures = 0;
  let cancel = afterMs(minPauseMs, () => void recheck());

  const look = async (signal: AbortSignal): Promise<CommandFault | null> => {
    const enough = (held: DiskUsage): boolean => exceededLimit(held, before, limits) !== null;
    const held = await measureDiskUsage({ roots, except, withBytes: limits.diskBytes !== undefined, enough, signal });
    const passed = exceededLimit(held, before, limits);
    return passed && limitExceeded(passed.limit, limits[passed.limit], { found: passed.found, whose });
  };
  const recheck = async (): Promise<void> => {
    const since = { ms: monotonicMs(), cpu: process.cpuUsage() };
    let fault: CommandFault | null = null;
    try {
      fault = await look(ending.signal);
      failures = 0;
    } catch (error) {
      failures += 1;
      if (failures === maxFailures) fault = cannotMeasure(limits, roots, error);
    }
    if (ending.signal.aborted) return;
    if (fault !== null) onFault(fault);
    else cancel = afterMs(pauseAfter(since), () => void recheck());
  };
  const stop = (): void => {
    ending.abort();
    cancel();
  };
  return {
    stop,
    async finalCheck(signal) {
      stop();
      try {
        return await look(AbortSignal.any([signal, AbortSignal.timeout(finalCheckMs)]));
      } catch (error) {
        return cannotMeasure(limits, roots, error);
      }
    },
  };
}

/** Returns null if the command has no such limit. */
export function watchCommand(
  { limits, workingDirectory }: Command,
  { uncounted }: StartOptions,
  onFault: WatchOptions["onFault"],
): DiskUsageWatch | null {
  if (!hasDiskLimit(limits)) return null;
  return watchDiskUsage({
    limits,
    roots: [workingDirectory ?? process.cwd()],
    except: uncounted?.folders ?? [],
    before: uncounted?.before ?? nothing,
    onFault,
  });
}

export type InitialUsage = { ok: true; held: DiskUsage } | { ok: false; fault: CommandFault };

/** Measures the usage before the start. Fails if a directory cannot be read, because its limit could not be checked. */
export async function measureInitialUsage(
  { roots, except }: MeasuredDirectories,
  limits: DiskLimits,
  signal: AbortSignal,
): Promise<InitialUsage> {
  try {
    for (const root of roots) await promises.access(root, constants.R_OK | constants.X_OK);
    const withBytes = limits.diskBytes !== undefined;
    return { ok: true, held: await measureDiskUsage({ roots, except, withBytes, enough: () => false, signal }) };
  } catch (error) {
    return { ok: false, fault: cannotMeasure(limits, roots, error) };
  }
}

/** Adds the current usage of the working directory to the options, if the command has a disk limit. */
export async function withInitialUsage<T extends Pick<StartOptions, "uncounted">>(
  { limits, workingDirectory = process.cwd() }: Command,
  options: T,
  signal: AbortSignal,
): Promise<T | { fault: CommandFault }> {
  const { uncounted } = options;
  if (!hasDiskLimit(limits) || uncounted?.before !== undefined) return options;
  const places = { roots: [workingDirectory], except: uncounted?.folders ?? [] };
  const before = await measureInitialUsage(places, limits, signal);
  return before.ok ? { ...options, uncounted: { ...uncounted, before: before.held } } : { fault: before.fault };
}

const nothing: DiskUsage = { bytes: 0, files: 0 };

function hasDiskLimit(limits: Limits | undefined): limits is Limits {
  return limits?.diskBytes !== undefined || limits?.files !== undefined;
}

function exceededLimit(
  held: DiskUsage,
  before: DiskUsage,
  { diskBytes, files }: DiskLimits,
): { limit: keyof DiskLimits; found: number } | null {
  const bytesMore = held.bytes - before.bytes;
  if (diskBytes !== undefined && bytesMore > diskBytes) return { limit: "diskBytes", found: bytesMore };
  const filesMore = held.files - before.files;
  if (files !== undefined && filesMore > files) return { limit: "files", found: filesMore };
  return null;
}

/** Based on CPU time, so that a busy machine or a slow disk does not delay the next check; but at least half the time is pause. */
function pauseAfter(since: { ms: number; cpu: NodeJS.CpuUsage }): number {
  const { user, system } = process.cpuUsage(since.cpu);
  return Math.max(minPauseMs, ((user + system) / 1000) * pauseFactor, monotonicMs() - since.ms);
}

function cannotMeasure(limits: DiskLimits, roots: readonly string[], error: unknown): CommandFault {
  const why = error instanceof Error && "code" in error ? String(error.code) : String(error);
  return limitMissing(
    limits.diskBytes === undefined ? "files" : "diskBytes",
    `${roots.join(" and ")} cannot be read (${why})`,
  );
}
