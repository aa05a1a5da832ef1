import { constants } from "node:os";
import type { ProcessEnd } from "../model/process.ts";

/** Node has no names for realtime signals, so they become SIG34 and so on. */
export function toSignalName(number: number): NonNullable<ProcessEnd["signal"]> {
  for (const [name, value] of Object.entries(constants.signals)) {
    // Object.entries types its keys as strings. SIGIOT and SIGPOLL share their numbers with names listed before them.
    if (value === number) return name as NodeJS.Signals;
  }
  return `SIG${number}`;
}

export function toSignalNumber(name: NonNullable<ProcessEnd["signal"]>): number {
  // A name that is missing in the table is SIG and a number, see toSignalName.
  return (constants.signals as Partial<Record<string, number>>)[name] ?? Number(name.slice(3));
}

export function toErrnoName(number: number): string {
  return Object.entries(constants.errno).find(([, value]) => value === number)?.[0] ?? `errno ${number}`;
}
