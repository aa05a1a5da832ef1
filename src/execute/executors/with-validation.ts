import { type Executor, type Outcome, parkReasons, type RunContext } from "../../model/executor.ts";
import { failureReasons } from "../../model/states.ts";
import { suggest } from "../../model/suggest.ts";
import { loadEventParser, type ParseEvent } from "./parse-event.ts";

/**
 * Validates the events and the outcome of third-party code, so that the log contains nothing that the coordinator would refuse.
 */
export async function withValidation(executor: Executor): Promise<Executor> {
  const parse = await loadEventParser();
  return {
    name: executor.name,
    can: {
      resume: executor.can.resume === true,
      fork: executor.can.fork === true,
      ask: executor.can.ask === true,
      input: executor.can.input === true,
      state: executor.can.state === true,
      park: executor.can.park === true,
      fork_at_turn: executor.can.fork_at_turn === true,
    },
    ...(Array.isArray(executor.variables) ? { variables: executor.variables.map(String) } : {}),
    async run(invocation, context) {
      const outcome = await executor.run(invocation, createValidatingContext(executor.name, context, parse));
      const { valid, problem } = validateOutcome(outcome, executor.name);
      if (problem !== null) await context.emit({ type: "error", code: "bad_outcome", message: problem });
      return valid;
    },
  };
}

function createValidatingContext(name: string, context: RunContext, parse: ParseEvent): RunContext {
  const reportInvalid = (problem: string): Promise<void> =>
    context.emit({
      type: "error",
      code: "bad_event",
      message: `The executor ${name} sent an invalid event, which was dropped: ${problem}`,
    });
  return {
    ...context,
    async emit(event) {
      const parsed = parse(event);
      return typeof parsed === "string" ? reportInvalid(parsed) : context.emit(parsed);
    },
    usage(usage) {
      const parsed = parse({ type: "usage", usage });
      if (typeof parsed === "string") void reportInvalid(parsed);
      else if (parsed.type === "usage") context.usage(parsed.usage);
    },
    partial(delta) {
      const { kind, text } = delta;
      if ((kind === "assistant" || kind === "output") && typeof text === "string") context.partial({ kind, text });
      else void reportInvalid('partial: expected { kind: "assistant" or "output", text }');
    },
    async ask(question) {
      const parsed = parse({ ...question, type: "permission_request" });
      if (typeof parsed !== "string" && parsed.type === "permission_request") return context.ask(parsed);
      await reportInvalid(String(parsed));
      return { decision: "deny", message: "The question was invalid and could not be asked." };
    },
  };
}

function validateOutcome(outcome: Outcome, name: string): { valid: Outcome; problem: string | null } {
  const untrusted = outcome as Partial<Extract<Outcome, { status: "failed" }>> | undefined; // Each field is checked below.
  const text = typeof untrusted?.text === "string" ? untrusted.text : undefined;
  const exit_code = Number.isInteger(untrusted?.exit_code) ? untrusted!.exit_code! : null;
  const data = untrusted?.data === undefined ? {} : { data: untrusted.data };
  const accept = (valid: Outcome) => ({ valid, problem: null });
  switch (outcome?.status) {
    case "completed":
      return accept({ status: "completed", exit_code, text: text ?? null, ...data });
    case "failed": {
      const reason = failureReasons.find((candidate) => candidate === outcome.reason);
      const valid: Outcome = {
        status: "failed",
        reason: reason ?? "internal",
        message: String(outcome.message),
        exit_code,
        ...(text === undefined ? {} : { text }),
        ...data,
      };
      return { valid, problem: reason === undefined ? unknownReason(outcome.reason, name) : null };
    }
    case "cancelled":
      return accept({ status: "cancelled", by: outcome.by === "shutdown" ? "shutdown" : "user" });
    case "parked":
      return validateParked(outcome, name);
    default: {
      const message = `The executor ${name} returned no valid outcome.`;
      return accept({ status: "failed", reason: "internal", message, exit_code: null });
    }
  }
}

function validateParked(
  { why, until, message }: Extract<Outcome, { status: "parked" }>,
  name: string,
): { valid: Outcome; problem: string | null } {
  const reason = parkReasons.find((candidate) => candidate === why);
  if (reason === undefined) {
    const problem = `The executor ${name} parked its run without a valid reason. Valid reasons are ${parkReasons.join(", ")}.`;
    return { valid: { status: "failed", reason: "internal", message: problem, exit_code: null }, problem: null };
  }
  const time = until === undefined ? Number.NaN : new Date(until).getTime();
  const valid: Outcome = {
    status: "parked",
    why: reason,
    ...(Number.isNaN(time) ? {} : { until: new Date(time).toISOString() }),
    ...(typeof message === "string" ? { message } : {}),
  };
  const isInvalidTime = until !== undefined && Number.isNaN(time);
  return {
    valid,
    problem: isInvalidTime
      ? `The executor ${name} parked its run with an invalid time in \`until\`, which was ignored.`
      : null,
  };
}

function unknownReason(reason: unknown, name: string): string {
  const text = String(reason).slice(0, 100);
  const suggestion = suggest(text, failureReasons);
  return `The executor ${name} failed with the unknown reason ${JSON.stringify(text)}, which is reported as internal.${suggestion === undefined ? "" : ` Did you mean ${suggestion}?`} See docs/states.md for the list.`;
}
