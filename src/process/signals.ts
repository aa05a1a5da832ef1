import { constants } from "node:os";
import type { Ended } from "../model/process.ts";

/** Realtime signals have no name in Node and become SIG34 and so on. */
export function signalName(number: number): NonNullable<Ended["signal"]> {
  for (const [name, value] of Object.entries(constants.signals)) {
    // Object.entries loses that the keys are signal names. SIGIOT, SIGPOLL share numbers with a name listed before them.
    if (value === number) return name as NodeJS.Signals;
  }
  return `SIG${number}`;
}

export function signalNumber(name: NonNullable<Ended["signal"]>): number {
  // a name that is not in the table is SIG and a number, see above
  return (constants.signals as Partial<Record<string, number>>)[name] ?? Number(name.slice(3));
}

export function errnoName(number: number): string {
  return Object.entries(constants.errno).find(([, value]) => value === number)?.[0] ?? `errno ${number}`;
}
