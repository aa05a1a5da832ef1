import type { ExecutionStart } from "../../src/model/execution.ts";

/**
 * Describes what the record knows about the variables of a command. It names the variables that were set for the command and
 * those that were withheld, but not those that the command inherited.
 */
export function describeEnvironment({ mode, given, withheld }: NonNullable<ExecutionStart["environment"]>): string {
  const set = given.length === 0 ? null : given.join(", ");
  if (mode === "replace") return set === null ? "empty" : `only ${set}`;
  const base = mode === "inherit" ? "inherited from Drover" : "the base list and what the runner allows";
  return [base, set && `set: ${set}`, withheld.length > 0 ? `withheld: ${withheld.join(", ")}` : null]
    .filter(Boolean)
    .join("; ");
}
