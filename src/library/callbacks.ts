import type { Decision } from "../model/executor.ts";
import type { AgentQuestion, RunnerCallbacks, SDKMessage } from "./types.ts";

/** The caller's functions. Errors they throw are collected and printed; they do not end the run. */
export interface Callbacks {
  message(message: unknown): Promise<void>;
  /** null if the caller does not answer questions. */
  question: ((question: AgentQuestion) => Promise<Decision>) | null;
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
    process.emitWarning(`${name} threw: ${error.message}. The run continues.`, "DroverWarning");
  };
  return {
    report,
    errors,
    get lastResultOrError() {
      return lastResultOrError;
    },
    async message(given) {
      // the SDK's declarations say that every message is an object with a type
      const message = given as SDKMessage;
      if (message.type === "result" || message.error !== undefined) lastResultOrError = message;
      try {
        await onMessage?.(message);
      } catch (error) {
        report("onMessage", error);
      }
    },
    question:
      onQuestion === undefined
        ? null
        : async (question) => {
            try {
              return checked(await onQuestion(question));
            } catch (error) {
              report("onQuestion", error);
              return { decision: "deny", message: "The program that answers questions failed." };
            }
          },
  };
}

/** Validates at run time, for callers in plain JavaScript. */
function checked(decision: Decision): Decision {
  const { decision: given, ...more }: Partial<Decision> & Record<string, unknown> = decision ?? {};
  const allowed = given === "allow" ? ["input", "remember"] : ["message"];
  if (given !== "allow" && given !== "deny" && given !== "stop")
    throw new TypeError('A decision must be { decision: "allow" }, { decision: "deny" } or { decision: "stop" }');
  const wrong = Object.keys(more).find((key) => more[key] !== undefined && !allowed.includes(key));
  if (wrong !== undefined) throw new TypeError(`A decision to ${given} has no ${wrong}`);
  return decision;
}
