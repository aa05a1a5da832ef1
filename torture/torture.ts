import type { EngineName, Finding, Tools } from "./finding.ts";

export interface Torture {
  name: string;
  promise: string;
  /** Only one if the row would be the same on the other engine, or does not exist there. */
  engines: readonly EngineName[];
  /** Runs the row at a fraction of its full size. */
  run: (scale: number, tools: Tools) => Promise<Finding>;
}

export const bothEngines = ["sqlite", "postgres"] as const;
export const onlySqlite = ["sqlite"] as const;
export const onlyPostgres = ["postgres"] as const;

/** Scales a size, to at least one. */
export function scaleSize(full: number, scale: number): number {
  return Math.max(1, Math.round(full * scale));
}
