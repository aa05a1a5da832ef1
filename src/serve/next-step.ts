import type { ErrorCode } from "../model/errors.ts";

/** What to do about a refusal, where whoever refuses has nothing better to say: every error has a next step. */
export function nextStep(code: ErrorCode): string {
  return usual[code] ?? "GET /docs shows what each route takes and gives.";
}

const usual: Partial<Record<ErrorCode, string>> = {
  "DROVER-API-001": "Send one JSON value, in UTF-8.",
  "DROVER-API-002": "Send it with the header content-type: application/json.",
  "DROVER-API-003": "Send less at once.",
  "DROVER-API-004": "Send it less deeply nested.",
  "DROVER-API-005": "Leave that key out.",
  "DROVER-API-006": "Correct what `faults` names; GET /docs shows what this route takes.",
  "DROVER-API-008": "Use one of the methods in the header Allow; GET /docs lists every route.",
  "DROVER-API-011": "Use a token that may do this: an admin makes one with `drover tokens create`.",
  "DROVER-API-014": "Take an id from the list; what is somebody else's only an admin sees.",
  "DROVER-API-016": "Register the runner again; one of Drover's does so by itself.",
  "DROVER-API-017": "Register again, unless this runner was started a second time: then end one of the two.",
  "DROVER-API-018": "End the other runner, or start this one with another state directory or profile.",
  "DROVER-API-024": "Ask again in a moment. The coordinator's log says why.",
  "DROVER-API-029": "Send the request whole, and as HTTP/1.1 has it.",
  "DROVER-API-030": "Look at its state as it is now; GET /docs shows what can be done in which.",
  "DROVER-HOK-001": "Check the name and the secret; docs/webhooks.md shows how to sign.",
  "DROVER-HOK-002": "Sign it anew, and compare the clocks of both machines.",
  "DROVER-HOK-003": "Nothing to do: each delivery makes one run.",
  "DROVER-HOK-004": "Compare the body with the hook's parameters, or give them a default.",
  "DROVER-HOK-005": "Send it again after the time in Retry-After.",
  "DROVER-HOK-006": "Choose another name, or change the one that is there.",
  "DROVER-HOK-007": "Use a public address, or ask the operator to allow this one in drover.yaml: webhooks.allow.",
  "DROVER-SUB-002": "Start a new run of it instead.",
  "DROVER-SUB-003": "Take a session from `drover sessions list` that is of this agent and yours, or start a new one.",
  "DROVER-BUG-001": "Look into the coordinator's log, and report what it says there.",
};
