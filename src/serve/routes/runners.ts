import type { ErrorCode } from "../../model/errors.ts";
import { PortError, type PortConflict } from "../../model/port-error.ts";
import type { Registration, RunnerPort } from "../../model/runner-port.ts";
import type { ApiDeps, SystemDeps } from "../deps.ts";
import { Refusal } from "../refusal.ts";
import { created } from "../reply.ts";
import { createRouteBuilder } from "../route.ts";
import { type Principal, runners, getSubject } from "../rule.ts";
import { receiveFile } from "../receive-file.ts";
import { hashToken, newTokenText } from "../token-text.ts";

const route = createRouteBuilder<ApiDeps>();
const portRoute = createRouteBuilder<SystemDeps>();

const reportLimit = 20 * 1024 * 1024;
const registerLimit = 2 * 1024 * 1024;
/** Covers events and files. Files grow by a third as base64. */
const saveLimit = 40 * 1024 * 1024;

/**
 * A runner without a response for the length of its lease must stop its runs, but a 503 lets it continue. A report
 * starts at most 3 s after the lease was renewed, so 7 s of a 10 s lease are left. Failing after 4 s leaves time to answer with
 * a 503.
 */
const reportRecordTimeoutMs = 4000;

const enrolmentProblems = {
  not_found: "This enrolment token does not exist.",
  used: "This enrolment token was already used.",
  revoked: "This enrolment token was revoked.",
  expired: "This enrolment token has expired.",
  exists: "This enrolment token cannot be used.",
} as const;

export const runnerRoutes = [
  route("POST /runner/enroll", {
    rule: { enrolment: true },
    async handle({ deps, principal }) {
      // The rule admits only enrolment tokens; this check tells the compiler.
      if (principal.kind !== "enrolment")
        throw new Refusal(403, "DROVER-API-011", "Only an enrolment token can be used here.");
      const text = newTokenText("drv_");
      const now = deps.now().toISOString();
      const token_id = deps.newId();
      const token = {
        token_id,
        kind: "access",
        role: "runner",
        subject: principal.subject,
        label: principal.label ?? "enrolled runner",
        created_by: principal.subject,
        created_at: now,
        expires_at: null,
        revoked_at: null,
        used_at: null,
      } as const;
      const [result] = await deps.store.apply([
        { op: "use_enrolment", hash: principal.hash, at: now, token, token_hash: hashToken(text) },
      ]);
      if (result.ok) return created({ token: text, token_id, subject: result.subject });
      throw new Refusal(409, "DROVER-API-019", enrolmentProblems[result.conflict], {
        faults: [{ path: "header.authorization", message: result.conflict }],
        next: "Ask an admin for a new one: drover tokens enrol SUBJECT",
      });
    },
  }),
];

/** The runner port over HTTP. A runner in the coordinator's own process calls the port itself. */
export const runnerPortRoutes = [
  portRoute("POST /runner/register", {
    rule: { roles: runners },
    bodyLimit: registerLimit,
    handle: (call) =>
      callPort(call, async (port) => ({
        ...(await port.register({ ...call.body, runner_key: call.body.runner_key ?? deriveRunnerKey(call.body) })),
        poll_silence_ms: call.deps.pollSilenceMs,
      })),
  }),
  portRoute("POST /runner/poll", {
    rule: { roles: runners },
    sendsKeepalives: true,
    handle: (call) => callPort(call, (port) => port.poll(call.body, call.signal)),
  }),
  portRoute("POST /runner/report", {
    rule: { roles: runners },
    bodyLimit: reportLimit,
    recordTimeoutMs: reportRecordTimeoutMs,
    handle: (call) => callPort(call, (port) => port.report(call.body)),
  }),
  portRoute("POST /runner/files", {
    rule: { roles: runners },
    handle: (call) => callPort(call, (port) => receiveFile(port, call.query, call.bytes, call.signal)),
  }),
  portRoute("POST /runner/sessions", {
    rule: { roles: runners },
    handle: (call) => callPort(call, (port) => port.sessions(call.body)),
  }),
  portRoute("POST /runner/session/load", {
    rule: { roles: runners },
    handle: (call) => callPort(call, (port) => port.loadSession(call.body)),
  }),
  portRoute("POST /runner/session/save", {
    rule: { roles: runners },
    bodyLimit: saveLimit,
    handle: (call) => callPort(call, (port) => port.saveSession(call.body)),
  }),
  portRoute("POST /runner/deregister", {
    rule: { roles: runners },
    handle: (call) =>
      callPort(call, async (port) => {
        await port.deregister(call.body);
        return {};
      }),
  }),
];

/** Derives the key of a runner that sends none: the same host, directory, profile and name mean the same runner. */
function deriveRunnerKey({
  hostname,
  project_dir,
  executor_profile,
  name = "",
}: Omit<Registration, "runner_key">): string {
  return hashToken(JSON.stringify([hostname, project_dir, executor_profile, name]));
}

/** Checks the signal afterwards, on success and on failure, so a runner that has disconnected or lost its token gets no result. */
async function callPort<T>(
  call: { deps: SystemDeps; principal: Principal; readonly signal: AbortSignal },
  request: (port: RunnerPort) => Promise<T>,
): Promise<T> {
  const { signal } = call;
  try {
    const result = await request(call.deps.dispatcher.portFor(getSubject(call.principal)));
    signal.throwIfAborted();
    return result;
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof PortError ? portRefusal(error) : error;
  }
}

const refusals: Record<PortConflict, [status: number, code: ErrorCode]> = {
  unknown_runner: [404, "DROVER-API-016"],
  old_epoch: [409, "DROVER-API-017"],
  duplicate_runner: [409, "DROVER-API-018"],
  unauthorized: [403, "DROVER-API-011"],
  refused: [400, "DROVER-API-006"],
  unproven: [503, "DROVER-API-024"],
  away: [503, "DROVER-API-024"],
};

function portRefusal(error: PortError): Refusal {
  const [status, code] = refusals[error.conflict];
  return new Refusal(status, code, error.message, { faults: [{ path: "body", message: error.conflict }] });
}
