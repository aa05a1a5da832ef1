import type { RunnerPort } from "../../model/runner-port.ts";
import type { PortFailure } from "./port-failure.ts";

type PortCall = "register" | "poll" | "report" | "deregister";

export interface OutageReporter {
  /** The same port. A successful call ends its outage, so that the next outage is reported again. */
  port: RunnerPort;
  report(call: PortCall, error: unknown, failure: PortFailure): void;
}

/**
 * Reports an outage once, when it starts, and not with every retry. Errors of one outage differ (a read, a write, a
 * connection), so their messages are not compared. A refusal is reported once for each message.
 */
export function reportOutages(port: RunnerPort, onNotice: (message: string) => void): OutageReporter {
  const reported = new Map<PortCall, Set<string>>();
  const endOutage = (call: PortCall) => {
    return <T>(response: T): T => {
      reported.delete(call);
      return response;
    };
  };
  return {
    port: {
      ...port,
      register: (registration) => port.register(registration).then(endOutage("register")),
      poll: (request, signal) => port.poll(request, signal).then(endOutage("poll")),
      report: (report) => port.report(report).then(endOutage("report")),
    },
    report(call, error, failure) {
      const message = error instanceof Error ? error.message : String(error);
      const kind = failure === "down" || failure === "silent" ? failure : `${failure}: ${message}`;
      const kinds = reported.get(call) ?? new Set();
      if (!kinds.has(kind)) onNotice(`${call} failed (${failure}): ${message}`);
      reported.set(call, kinds.add(kind));
    },
  };
}
