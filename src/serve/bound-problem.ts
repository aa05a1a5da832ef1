import type { Problem, ProblemFault } from "../wire/problem.ts";

interface ProblemLimits {
  /** The length of `detail`, and of `next`. */
  text: number;
  /** The length of a fault's path, and of its message. */
  faultText: number;
  faults: number;
  /** The length of all faults together. */
  allFaults: number;
}

export const refusalLimits: ProblemLimits = { text: 2000, faultText: 500, faults: 50, allFaults: 10_000 };
/** A batch can have a thousand problems. */
export const batchItemLimits: ProblemLimits = { text: 500, faultText: 200, faults: 5, allFaults: 1000 };

/**
 * Shortens a problem. Its texts quote names, paths and values from the request, each of which can be as long as the
 * request. Shortening twice changes nothing more.
 */
export function boundProblem<P extends Pick<Problem, "detail" | "faults" | "next">>(
  problem: P,
  limits: ProblemLimits,
): P {
  const { detail, faults, next } = problem;
  return {
    ...problem,
    detail: shorten(detail, limits.text),
    faults: boundFaults(faults, limits),
    ...(next === undefined ? {} : { next: shorten(next, limits.text) }),
  };
}

function boundFaults(faults: readonly ProblemFault[], limits: ProblemLimits): ProblemFault[] {
  const bounded: ProblemFault[] = [];
  let remaining = limits.allFaults;
  for (const fault of faults.slice(0, limits.faults)) {
    const path = shorten(fault.path, limits.faultText);
    const message = shorten(fault.message, limits.faultText);
    remaining -= path.length + message.length;
    if (remaining < 0) break;
    bounded.push({ path, message });
  }
  return bounded;
}

function shorten(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  // Do not keep half of a surrogate pair.
  return `${text.slice(0, maxLength - 3).replace(/[\ud800-\udbff]$/, "")}...`;
}
