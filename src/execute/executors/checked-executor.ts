import { type Executor, type Outcome, parkReasons, type RunContext } from "../../model/executor.ts";
import { failureReasons } from "../../model/states.ts";
import { suggest } from "../../model/suggest.ts";
import { loadEventParser, type ParseEvent } from "./parse-event.ts";

/** Code that is not ours may hand over anything: what the coordinator would refuse must not get into the log. */
export async function checkedExecutor(executor: Executor): Promise<Executor> {
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
      const outcome = await executor.run(invocation, checkedContext(executor.name, context, parse));
      const { sound, fault } = soundOutcome(outcome, executor.name);
      if (fault !== null) await context.emit({ type: "error", code: "bad_outcome", message: fault });
      return sound;
    },
  };
}

function checkedContext(name: string, context: RunContext, parse: ParseEvent): RunContext {
  const leaveOut = (fault: string): Promise<void> =>
    context.emit({ type: "error", code: "bad_event", message: `Left out, as ${name} sent it wrong: ${fault}` });
  return {
    ...context,
    async emit(event) {
      const parsed = parse(event);
      return typeof parsed === "string" ? leaveOut(parsed) : context.emit(parsed);
    },
    usage(usage) {
      const parsed = parse({ type: "usage", usage });
      if (typeof parsed === "string") void leaveOut(parsed);
      else if (parsed.type === "usage") context.usage(parsed.usage);
    },
    partial(delta) {
      const { kind, text } = delta;
      if ((kind === "assistant" || kind === "output") && typeof text === "string") context.partial({ kind, text });
      else void leaveOut('partial: expected { kind: "assistant" or "output", text }');
    },
    async ask(question) {
      const parsed = parse({ ...question, type: "permission_request" });
      if (typeof parsed !== "string" && parsed.type === "permission_request") return context.ask(parsed);
      await leaveOut(String(parsed));
      return { decision: "deny", message: "The question could not be asked." };
    },
  };
}

function soundOutcome(outcome: Outcome, name: string): { sound: Outcome; fault: string | null } {
  const sent = outcome as Partial<Extract<Outcome, { status: "failed" }>> | undefined; // whatever it is, it is only looked at
  const text = typeof sent?.text === "string" ? sent.text : undefined;
  const exit_code = Number.isInteger(sent?.exit_code) ? sent!.exit_code! : null;
  const data = sent?.data === undefined ? {} : { data: sent.data };
  const fine = (sound: Outcome) => ({ sound, fault: null });
  switch (outcome?.status) {
    case "completed":
      return fine({ status: "completed", exit_code, text: text ?? null, ...data });
    case "failed": {
      const reason = failureReasons.find((known) => known === outcome.reason);
      const sound: Outcome = {
        status: "failed",
        reason: reason ?? "internal",
        message: String(outcome.message),
        exit_code,
        ...(text === undefined ? {} : { text }),
        ...data,
      };
      return { sound, fault: reason === undefined ? unknownReason(outcome.reason, name) : null };
    }
    case "cancelled":
      return fine({ status: "cancelled", by: outcome.by === "shutdown" ? "shutdown" : "user" });
    case "parked":
      return soundParked(outcome, name);
    default: {
      const message = `The executor ${name} ended without an outcome.`;
      return fine({ status: "failed", reason: "internal", message, exit_code: null });
    }
  }
}

function soundParked(
  { why, until, message }: Extract<Outcome, { status: "parked" }>,
  name: string,
): { sound: Outcome; fault: string | null } {
  const known = parkReasons.find((one) => one === why);
  if (known === undefined) {
    const fault = `The executor ${name} parked its run without one of the reasons ${parkReasons.join(", ")}.`;
    return { sound: { status: "failed", reason: "internal", message: fault, exit_code: null }, fault: null };
  }
  const time = until === undefined ? Number.NaN : new Date(until).getTime();
  const sound: Outcome = {
    status: "parked",
    why: known,
    ...(Number.isNaN(time) ? {} : { until: new Date(time).toISOString() }),
    ...(typeof message === "string" ? { message } : {}),
  };
  const isOdd = until !== undefined && Number.isNaN(time);
  return { sound, fault: isOdd ? `\`until\` of the outcome of ${name} is no time, and was left out.` : null };
}

function unknownReason(reason: unknown, name: string): string {
  const given = String(reason).slice(0, 100);
  const near = suggest(given, failureReasons);
  return `There is no reason ${JSON.stringify(given)}, with which ${name} failed, so it is told as internal.${near === undefined ? "" : ` Did you mean ${near}?`} docs/states.md lists them.`;
}
