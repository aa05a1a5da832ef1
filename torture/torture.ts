import type { EngineName, Finding, Tools } from "./finding.ts";

export interface Torture {
  name: string;
  promise: string;
  /** Only one if the row would be the same on the other engine, or does not exist there. */
  engines: readonly EngineName[];
  /** Runs the row at a fraction of its full size. */
  run: (scale: number, tools: Tools) => Promise<Finding>;
}

export const both = ["sqlite", "postgres"] as const;
export const sqlite = ["sqlite"] as const;
export const postgres = ["postgres"] as const;

/** Scales a size, to at least one. */
export function scaled(full: number, scale: number): number {
  return Math.max(1, Math.round(full * scale));
}
