import type { RunnerPort } from "../../model/runner-port.ts";
import type { PortFault } from "./port-fault.ts";

type Lane = "register" | "poll" | "report" | "deregister";

export interface OutageReporter {
  /** What is answered here ends an outage of its lane: the next one is told again. */
  port: RunnerPort;
  tell(lane: Lane, error: unknown, fault: PortFault): void;
}

/**
 * An outage is told when it begins, not with every try: the same one makes a read fail, then a write, then a connection. Who
 * refuses says why, and that is told whenever it is something else.
 */
export function reportOutages(port: RunnerPort, onNotice: (message: string) => void): OutageReporter {
  const told = new Map<Lane, Set<string>>();
  const over = (lane: Lane) => {
    return <T>(answer: T): T => {
      told.delete(lane);
      return answer;
    };
  };
  return {
    port: {
      ...port,
      register: (registration) => port.register(registration).then(over("register")),
      poll: (request, signal) => port.poll(request, signal).then(over("poll")),
      report: (report) => port.report(report).then(over("report")),
    },
    tell(lane, error, fault) {
      const why = error instanceof Error ? error.message : String(error);
      const what = fault === "down" || fault === "silent" ? fault : `${fault}: ${why}`;
      const known = told.get(lane) ?? new Set();
      if (!known.has(what)) onNotice(`${lane} failed (${fault}): ${why}`);
      told.set(lane, known.add(what));
    },
  };
}
