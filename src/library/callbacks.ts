import type { Decision } from "../model/executor.ts";
import type { AgentQuestion, RunnerCallbacks, SDKMessage } from "./types.ts";

/** Wraps the caller's functions. Collects and prints the errors they throw or cause, which do not stop the run. */
export interface Callbacks {
  onMessage(message: unknown): Promise<void>;
  /** null if the caller does not answer questions. */
  onQuestion: ((question: AgentQuestion) => Promise<Decision>) | null;
  /** Collects and prints an error that the callback of this name threw or caused. */
  report(name: string, thrown: unknown): void;
  readonly errors: readonly Error[];
  /** The last SDK message that was a result or contained an error. */
  readonly lastResultOrError: SDKMessage | undefined;
}

export function createCallbacks({ onMessage, onQuestion }: RunnerCallbacks): Callbacks {
  const errors: Error[] = [];
  let lastResultOrError: SDKMessage | undefined;
  const report = (name: string, thrown: unknown): void => {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    errors.push(error);
    process.emitWarning(`${name} failed: ${error.message.replace(/\.$/, "")}. The run continues.`, "DroverWarning");
  };
  return {
    report,
    errors,
    get lastResultOrError() {
      return lastResultOrError;
    },
    async onMessage(sdkMessage) {
      // The SDK declares every message as an object with a type.
      const message = sdkMessage as SDKMessage;
      if (message.type === "result" || message.error !== undefined) lastResultOrError = message;
      try {
        await onMessage?.(message);
      } catch (error) {
        report("onMessage", error);
      }
    },
    onQuestion:
      onQuestion === undefined
        ? null
        : async (question) => {
            try {
              return checkDecision(await onQuestion(question));
            } catch (error) {
              report("onQuestion", error);
              return { decision: "deny", message: "The program that answers questions failed." };
            }
          },
  };
}

/** Validates at run time, for callers in plain JavaScript. */
function checkDecision(decision: Decision): Decision {
  const { decision: kind, ...fields }: Partial<Decision> & Record<string, unknown> = decision ?? {};
  const allowedFields = kind === "allow" ? ["input", "remember"] : ["message"];
  if (kind !== "allow" && kind !== "deny" && kind !== "stop")
    throw new TypeError('A decision must be { decision: "allow" }, { decision: "deny" } or { decision: "stop" }');
  const unknownField = Object.keys(fields).find((key) => fields[key] !== undefined && !allowedFields.includes(key));
  if (unknownField !== undefined) throw new TypeError(`A decision to ${kind} cannot have the field ${unknownField}`);
  return decision;
}
