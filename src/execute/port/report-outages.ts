import type { RunnerPort } from "../../model/runner-port.ts";
import type { PortFault } from "./port-fault.ts";

type PortCall = "register" | "poll" | "report" | "deregister";

export interface OutageReporter {
  /** The same port. An answered call ends its outage, so that the next one is reported again. */
  port: RunnerPort;
  report(call: PortCall, error: unknown, fault: PortFault): void;
}

/**
 * Reports an outage once, when it begins, and not with every retry. One outage fails in several ways (a read, a write,
 * a connection), so the message of such an error does not count. A refusal is reported once for each reason.
 */
export function reportOutages(port: RunnerPort, onNotice: (message: string) => void): OutageReporter {
  const reported = new Map<PortCall, Set<string>>();
  const endOutage = (call: PortCall) => {
    return <T>(answer: T): T => {
      reported.delete(call);
      return answer;
    };
  };
  return {
    port: {
      ...port,
      register: (registration) => port.register(registration).then(endOutage("register")),
      poll: (request, signal) => port.poll(request, signal).then(endOutage("poll")),
      report: (report) => port.report(report).then(endOutage("report")),
    },
    report(call, error, fault) {
      const why = error instanceof Error ? error.message : String(error);
      const what = fault === "down" || fault === "silent" ? fault : `${fault}: ${why}`;
      const known = reported.get(call) ?? new Set();
      if (!known.has(what)) onNotice(`${call} failed (${fault}): ${why}`);
      reported.set(call, known.add(what));
    },
  };
}
