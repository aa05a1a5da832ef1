import type { EngineName, Finding, Tools } from "./finding.ts";

export interface Torture {
  name: string;
  promise: string;
  /** One alone: the other would be the same again, or has no such thing. */
  engines: readonly EngineName[];
  /** At a fraction of its full size, at least once. */
  run: (scale: number, tools: Tools) => Promise<Finding>;
}

export const both = ["sqlite", "postgres"] as const;
export const sqlite = ["sqlite"] as const;
export const postgres = ["postgres"] as const;

/** A fraction of the full size, at least one. */
export function of(full: number, scale: number): number {
  return Math.max(1, Math.round(full * scale));
}
