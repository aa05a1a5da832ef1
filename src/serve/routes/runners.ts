import { z } from "zod";
import { PortError, type PortConflict } from "../../model/port-error.ts";
import type { ErrorCode } from "../../model/errors.ts";
import {
  deregisterSchema,
  enrolledSchema,
  goneSessionsSchema,
  pollAnswerSchema,
  pollSchema,
  registeredSchema,
  registrationSchema,
  reportAnswerSchema,
  reportSchema,
  sessionsOfRunnerSchema,
  uploadAnswerSchema,
  uploadQuerySchema,
} from "../../wire/runner-schemas.ts";
import { drainSchema, pageOf, runnerSchema } from "../../wire/schemas.ts";
import { notFound, Refusal } from "../refusal.ts";
import { takeFile } from "../take-file.ts";
import { type AnyCall, json, noContent, route } from "../route.ts";
import { anyone, runners, sees, subjectOf, submitters } from "../rule.ts";
import { hashToken, newTokenText } from "../token-text.ts";
import { whenClosed } from "../when-closed.ts";

const reportLimit = 20 * 1024 * 1024;

/**
 * A runner that gets no answer for as long as its lease must end what it runs; one that is told that the record does not
 * answer goes on. So it is told soon: after a heartbeat of 3 s, of a lease of 10 s there are 7 left.
 */
const reportMs = 4000;

export const runnerRoutes = [
  route({
    method: "get",
    path: "/runners",
    rule: { roles: anyone },
    summary: "List runners",
    answers: { 200: { description: "All that are one's own, for an admin all", schema: pageOf(runnerSchema) } },
    async handle({ deps, principal }) {
      const all = await deps.dispatcher.listRunners();
      return json({ items: all.filter(({ owner }) => sees(principal, owner)), next_cursor: null });
    },
  }),
  route({
    method: "post",
    path: "/runners/{runner_id}/drain",
    rule: { roles: submitters, object: "runner" },
    summary: "No further runs for this runner (draining: false takes it back)",
    body: drainSchema.prefault({}),
    answers: { 204: { description: "So it is" } },
    async handle({ deps, object: { runner_id }, body }) {
      if (!(await deps.dispatcher.drainRunner(runner_id, body.draining))) throw notFound("runner", "path.runner_id");
      return noContent();
    },
  }),
  route({
    method: "post",
    path: "/runner/enroll",
    rule: { enrolment: true },
    summary: "Exchange an enrolment token, once, for the runner's own token",
    answers: { 201: { description: "The token, which is shown only here", schema: enrolledSchema } },
    async handle({ deps, principal }) {
      // the rule lets nobody else in
      if (principal.kind !== "enrolment")
        throw new Refusal(403, "DROVER-API-011", "Only an enrolment token can be exchanged here.");
      const text = newTokenText("drv_");
      const at = deps.now().toISOString();
      const token_id = deps.newId();
      const token = {
        token_id,
        kind: "access",
        role: "runner",
        subject: principal.subject,
        label: principal.label ?? "enrolled runner",
        created_by: principal.subject,
        created_at: at,
        expires_at: null,
        revoked_at: null,
        used_at: null,
      } as const;
      const [result] = await deps.store.apply([
        { op: "use_enrolment", hash: principal.hash, at, token, token_hash: hashToken(text) },
      ]);
      if (result.ok) return json({ token: text, token_id, subject: result.subject }, 201);
      throw new Refusal(409, "DROVER-API-019", `This enrolment token cannot be used: ${result.conflict}.`, {
        faults: [{ path: "header.authorization", message: result.conflict }],
        next: "Have an admin make another: drover tokens enrol SUBJECT",
      });
    },
  }),
  route({
    method: "post",
    path: "/runner/register",
    rule: { roles: runners },
    summary: "Runner: register, or register again",
    body: registrationSchema,
    bodyLimit: reportLimit,
    answers: { 200: { description: "Its id and epoch", schema: registeredSchema } },
    handle: (call) =>
      overPort(call, async (port) => ({
        ...(await port.register(call.body)),
        poll_silence_ms: call.lifeSigns.silenceMs,
      })),
  }),
  route({
    method: "post",
    path: "/runner/poll",
    rule: { roles: runners },
    summary: "Runner: wait for runs and orders",
    body: pollSchema,
    answers: { 200: { description: "Claims and orders, possibly none", schema: pollAnswerSchema } },
    handle: (call) =>
      call.lifeSigns.during(call.outgoing, () => overPort(call, (port, signal) => port.poll(call.body, signal))),
  }),
  route({
    method: "post",
    path: "/runner/report",
    rule: { roles: runners },
    summary: "Runner: what happened; also its heartbeat",
    body: reportSchema,
    bodyLimit: reportLimit,
    recordMs: reportMs,
    answers: {
      200: { description: "What is stored, and what is no longer this runner's", schema: reportAnswerSchema },
    },
    handle: (call) => overPort(call, (port) => port.report(call.body)),
  }),
  route({
    method: "post",
    path: "/runner/files",
    rule: { roles: runners },
    summary: "Runner: one file of a run, as the body",
    query: uploadQuerySchema,
    raw: true,
    answers: { 200: { description: "It is stored, and belongs to this attempt", schema: uploadAnswerSchema } },
    handle: (call) => overPort(call, (port, signal) => takeFile(port, call.query, call.incoming, signal)),
  }),
  route({
    method: "post",
    path: "/runner/sessions",
    rule: { roles: runners },
    summary: "Runner: which of these sessions are no more",
    body: sessionsOfRunnerSchema,
    answers: { 200: { description: "Those whose folders can go", schema: goneSessionsSchema } },
    handle: (call) => overPort(call, (port) => port.sessions(call.body)),
  }),
  route({
    method: "post",
    path: "/runner/deregister",
    rule: { roles: runners },
    summary: "Runner: goodbye",
    body: deregisterSchema,
    answers: { 200: { description: "Gone", schema: z.object({}) } },
    handle: (call) =>
      overPort(call, async (port) => {
        await port.deregister(call.body);
        return {};
      }),
  }),
];

type Port = ReturnType<AnyCall["deps"]["dispatcher"]["portFor"]>;

async function overPort(
  call: Pick<AnyCall, "deps" | "principal" | "outgoing" | "stay">,
  ask: (port: Port, signal: AbortSignal) => Promise<unknown>,
): Promise<Response> {
  const gone = new AbortController();
  const leave = (): void => gone.abort();
  // a runner that hung up, or whose token has ended, must not be handed a run
  const stayed = whenClosed(call.outgoing, leave);
  call.stay.whenRefused(leave);
  try {
    const answer = await ask(call.deps.dispatcher.portFor(subjectOf(call.principal)), gone.signal);
    if (call.stay.refused) throw call.stay.refused;
    return json(answer);
  } catch (error) {
    if (call.stay.refused) throw call.stay.refused;
    if (gone.signal.aborted) throw new Refusal(400, "DROVER-API-029", "The runner hung up.");
    throw error instanceof PortError ? portRefusal(error) : error;
  } finally {
    stayed();
  }
}

const refusals: Record<PortConflict, [status: number, code: ErrorCode]> = {
  unknown_runner: [404, "DROVER-API-016"],
  old_epoch: [409, "DROVER-API-017"],
  duplicate_runner: [409, "DROVER-API-018"],
  unauthorized: [403, "DROVER-API-011"],
  refused: [400, "DROVER-API-006"],
  away: [503, "DROVER-API-024"],
};

function portRefusal(error: PortError): Refusal {
  const [status, code] = refusals[error.conflict];
  return new Refusal(status, code, error.message, { faults: [{ path: "body", message: error.conflict }] });
}
