import type { ErrorCode } from "../model/errors.ts";

/** The default next step for a refusal without one of its own. Every error response has one. */
export function getDefaultNextStep(code: ErrorCode): string {
  return defaults[code] ?? "GET /docs describes each route.";
}

const defaults: Partial<Record<ErrorCode, string>> = {
  "DROVER-API-001": "Send one JSON value encoded as UTF-8.",
  "DROVER-API-002": "Set the header content-type: application/json.",
  "DROVER-API-003": "Split the request into smaller ones.",
  "DROVER-API-004": "Reduce the nesting.",
  "DROVER-API-005": "Remove that key.",
  "DROVER-API-006": "Fix the fields listed in `faults`; GET /docs describes this route.",
  "DROVER-API-008": "Use one of the methods in the Allow header; GET /docs lists every route.",
  "DROVER-API-011": "Use a token that is allowed to do this; an admin can create one with `drover tokens create`.",
  "DROVER-API-014":
    "List the objects with GET to find a valid id, for example GET /runs. Only an admin can see objects of other owners.",
  "DROVER-API-016": "Register the runner again. Drover's own runner does this automatically.",
  "DROVER-API-017": "Register again. If this runner was started twice, stop one of the two.",
  "DROVER-API-018": "Stop the other runner, or start this one with another state directory or profile.",
  "DROVER-API-024": "Try again in a moment. The coordinator's log has the cause.",
  "DROVER-API-029": "Send a complete, valid HTTP/1.1 request.",
  "DROVER-API-030": "Get the current state of the object. GET /docs says what each state allows.",
  "DROVER-HOK-001": "Check the hook's name and secret; docs/webhooks.md explains how to sign.",
  "DROVER-HOK-002": "Sign the request again, and check the clocks of both machines.",
  "DROVER-HOK-003": "Nothing to do: each delivery creates one run.",
  "DROVER-HOK-004": "Compare the body with the hook's parameters, or give the parameters defaults.",
  "DROVER-HOK-005": "Send the delivery again after the time given in Retry-After.",
  "DROVER-HOK-006": "Choose another name, or change the hook or webhook that has this one.",
  "DROVER-HOK-007": "Use a public address, or ask the operator to allow this one with webhooks.allow in drover.yaml.",
  "DROVER-SUB-002": "Start a new run of the agent instead.",
  "DROVER-SUB-003": "Use one of your sessions of this agent from `drover sessions list`, or start a new one.",
  "DROVER-BUG-001": "See the coordinator's log, and report the error you find there.",
};
