import { constants } from "node:os";
import type { Ended } from "../model/process.ts";

/** Realtime signals have no name here: they come out as SIG34 and so on. */
export function signalName(number: number): NonNullable<Ended["signal"]> {
  for (const [name, value] of Object.entries(constants.signals)) {
    // Object.entries loses that the keys are signal names. SIGIOT, SIGPOLL share numbers with a name listed before them.
    if (value === number) return name as NodeJS.Signals;
  }
  return `SIG${number}`;
}

export function signalNumber(name: NonNullable<Ended["signal"]>): number {
  // any name not in the table is one of ours: SIG and a number
  return (constants.signals as Partial<Record<string, number>>)[name] ?? Number(name.slice(3));
}

export function errnoName(number: number): string {
  return Object.entries(constants.errno).find(([, value]) => value === number)?.[0] ?? `errno ${number}`;
}
