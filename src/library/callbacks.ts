import type { Decision } from "../model/executor.ts";
import type { AgentQuestion, RunnerCallbacks, SDKMessage } from "./types.ts";

/** The caller's functions. What they throw is kept and printed, and ends nothing. */
export interface Callbacks {
  message(message: unknown): Promise<void>;
  /** null: the caller does not answer questions. */
  question: ((question: AgentQuestion) => Promise<Decision>) | null;
  /** Keeps and prints what the function of this name threw, or made go wrong. */
  report(name: string, thrown: unknown): void;
  readonly errors: readonly Error[];
  /** The last message that tells how a query ended or what went wrong in it. */
  readonly lastResultOrError: SDKMessage | undefined;
}

export function createCallbacks({ onMessage, onQuestion }: RunnerCallbacks): Callbacks {
  const errors: Error[] = [];
  let lastResultOrError: SDKMessage | undefined;
  const report = (name: string, thrown: unknown): void => {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    errors.push(error);
    process.emitWarning(`${name} threw: ${error.message}. The run goes on.`, "DroverWarning");
  };
  return {
    report,
    errors,
    get lastResultOrError() {
      return lastResultOrError;
    },
    async message(given) {
      // whatever the SDK sends is an object with a type; see its own declarations
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
              return { decision: "deny", message: "The program that decides about questions failed." };
            }
          },
  };
}

/** Callers in JavaScript have no compiler to tell them. */
function checked(decision: Decision): Decision {
  const { decision: given, ...more }: Partial<Decision> & Record<string, unknown> = decision ?? {};
  const allowed = given === "allow" ? ["input", "remember"] : ["message"];
  if (given !== "allow" && given !== "deny" && given !== "stop")
    throw new TypeError('A decision is { decision: "allow" }, { decision: "deny" } or { decision: "stop" }');
  const wrong = Object.keys(more).find((key) => more[key] !== undefined && !allowed.includes(key));
  if (wrong !== undefined) throw new TypeError(`A decision to ${given} has no ${wrong}`);
  return decision;
}
