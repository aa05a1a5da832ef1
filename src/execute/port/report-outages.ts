import type { RunnerPort } from "../../model/runner-port.ts";
import type { PortFailure } from "./port-failure.ts";

type PortCall = "register" | "poll" | "report" | "deregister";

export interface OutageReporter {
  /**
   * The same port. A successful call ends its outage, so that the next outage is reported again. The first successful call
   * after a reported loss of the connection reports that it is back.
   */
  port: RunnerPort;
  report(call: PortCall, error: unknown, failure: PortFailure): void;
}

/**
 * Reports an outage once, when it starts, and not with every retry. Errors of one outage differ (a read, a write, a
 * connection), so their messages are not compared. A refusal is reported once for each message.
 */
export function reportOutages(port: RunnerPort, profile: string, onNotice: (message: string) => void): OutageReporter {
  const reported = new Map<PortCall, Set<string>>();
  let isDisconnected = false;
  const endOutage = (call: PortCall) => {
    return <T>(response: T): T => {
      reported.delete(call);
      if (isDisconnected) onNotice(`connected to the coordinator again (profile ${profile})`);
      isDisconnected = false;
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
      if (!kinds.has(kind)) {
        onNotice(`${call} failed (${failure}): ${message}`);
        // At shutdown, nothing is sent after a deregistration.
        if (kind === failure && call !== "deregister") isDisconnected = true;
      }
      reported.set(call, kinds.add(kind));
    },
  };
}
