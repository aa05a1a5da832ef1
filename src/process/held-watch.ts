import { constants, promises } from "node:fs";
import { monotonicMs } from "../model/clock.ts";
import type { Command, CommandFault, DiskUsage, Limits, StartOptions } from "../model/process.ts";
import { limitExceeded, limitMissing } from "./faults.ts";
import { countHeld } from "./held.ts";
import { afterMs } from "./timer.ts";

/** The limits that no kernel keeps for us. */
export type HeldLimits = Pick<Limits, "diskBytes" | "files">;

export interface HeldPlaces {
  roots: readonly string[];
  except: readonly string[];
}

export interface WatchOptions extends HeldPlaces {
  limits: HeldLimits;
  /** What was there before, and is not counted. */
  before: DiskUsage;
  /** Told once, and the watch is over. */
  onFault: (fault: CommandFault) => void;
  whose?: "command" | "run";
}

export interface HeldWatch {
  stop(): void;
  /** One more look, for whoever was faster than the watch. null: nothing found, or not in time. */
  lastLook(signal: AbortSignal): Promise<CommandFault | null>;
}

const shortestRestMs = 100;
/** Rest for the processor time of a look: a tenth of a core at most, however large the tree. */
const restFactor = 9;
const lastLookMs = 5000;
/** A look may fail by chance, as where descriptors run short; so many in a row do not. */
const mostFailures = 3;

export function watchHeld(options: WatchOptions): HeldWatch {
  const { limits, roots, except, before, onFault, whose = "command" } = options;
  const ending = new AbortController();
  let failures = 0;
  let cancel = afterMs(shortestRestMs, () => void lookAgain());

  const look = async (signal: AbortSignal): Promise<CommandFault | null> => {
    const enough = (held: DiskUsage): boolean => passedBy(held, before, limits) !== null;
    const held = await countHeld({ roots, except, withBytes: limits.diskBytes !== undefined, enough, signal });
    const passed = passedBy(held, before, limits);
    return passed && limitExceeded(passed.limit, limits[passed.limit], { found: passed.found, whose });
  };
  const lookAgain = async (): Promise<void> => {
    const since = { ms: monotonicMs(), cpu: process.cpuUsage() };
    let fault: CommandFault | null = null;
    try {
      fault = await look(ending.signal);
      failures = 0;
    } catch (error) {
      failures += 1;
      if (failures === mostFailures) fault = cannotLook(limits, roots, error);
    }
    if (ending.signal.aborted) return;
    if (fault !== null) onFault(fault);
    else cancel = afterMs(restAfter(since), () => void lookAgain());
  };
  const stop = (): void => {
    ending.abort();
    cancel();
  };
  return {
    stop,
    async lastLook(signal) {
      stop();
      try {
        return await look(AbortSignal.any([signal, AbortSignal.timeout(lastLookMs)]));
      } catch (error) {
        return cannotLook(limits, roots, error);
      }
    },
  };
}

/** null where the command has no such limit. */
export function watchCommand(
  { limits, workingDirectory }: Command,
  { uncounted }: StartOptions,
  onFault: WatchOptions["onFault"],
): HeldWatch | null {
  if (!hasHeldLimit(limits)) return null;
  return watchHeld({
    limits,
    roots: [workingDirectory ?? process.cwd()],
    except: uncounted?.folders ?? [],
    before: uncounted?.before ?? nothing,
    onFault,
  });
}

export type HeldBefore = { ok: true; held: DiskUsage } | { ok: false; fault: CommandFault };

/** What is there before anything is started. A folder that cannot be looked into is no ground for a limit. */
export async function heldBefore(
  { roots, except }: HeldPlaces,
  limits: HeldLimits,
  signal: AbortSignal,
): Promise<HeldBefore> {
  try {
    for (const root of roots) await promises.access(root, constants.R_OK | constants.X_OK);
    const withBytes = limits.diskBytes !== undefined;
    return { ok: true, held: await countHeld({ roots, except, withBytes, enough: () => false, signal }) };
  } catch (error) {
    return { ok: false, fault: cannotLook(limits, roots, error) };
  }
}

/** The options with what is in the working directory now, where a limit is about that. */
export async function withHeldBefore<T extends Pick<StartOptions, "uncounted">>(
  { limits, workingDirectory = process.cwd() }: Command,
  options: T,
  signal: AbortSignal,
): Promise<T | { fault: CommandFault }> {
  const { uncounted } = options;
  if (!hasHeldLimit(limits) || uncounted?.before !== undefined) return options;
  const places = { roots: [workingDirectory], except: uncounted?.folders ?? [] };
  const before = await heldBefore(places, limits, signal);
  return before.ok ? { ...options, uncounted: { ...uncounted, before: before.held } } : { fault: before.fault };
}

const nothing: DiskUsage = { bytes: 0, files: 0 };

function hasHeldLimit(limits: Limits | undefined): limits is Limits {
  return limits?.diskBytes !== undefined || limits?.files !== undefined;
}

function passedBy(
  held: DiskUsage,
  before: DiskUsage,
  { diskBytes, files }: HeldLimits,
): { limit: keyof HeldLimits; found: number } | null {
  const bytesMore = held.bytes - before.bytes;
  if (diskBytes !== undefined && bytesMore > diskBytes) return { limit: "diskBytes", found: bytesMore };
  const filesMore = held.files - before.files;
  if (files !== undefined && filesMore > files) return { limit: "files", found: filesMore };
  return null;
}

/** A busy machine or a slow disk makes a look long, which is no reason to look nine times as late; but half the time it rests. */
function restAfter(since: { ms: number; cpu: NodeJS.CpuUsage }): number {
  const { user, system } = process.cpuUsage(since.cpu);
  return Math.max(shortestRestMs, ((user + system) / 1000) * restFactor, monotonicMs() - since.ms);
}

function cannotLook(limits: HeldLimits, roots: readonly string[], error: unknown): CommandFault {
  const why = error instanceof Error && "code" in error ? String(error.code) : String(error);
  return limitMissing(
    limits.diskBytes === undefined ? "files" : "diskBytes",
    `${roots.join(" and ")} cannot be looked through (${why})`,
  );
}
