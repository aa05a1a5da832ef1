import type { RunContext } from "../../../model/executor.ts";
import type { Usage } from "../../../model/event.ts";
import type {
  CompactResult,
  ProviderFault,
  ProviderSession,
  ToolResult,
  Turn,
  TurnOptions,
} from "../../../model/provider.ts";
import type { FailureReason } from "../../../model/states.ts";
import { RunFailure } from "../../scaffold/run-failure.ts";
import type { BudgetKeeper } from "./budget-keeper.ts";
import type { ModelAnswer } from "./loop-state.ts";
import { RunParked } from "./run-parked.ts";

/**
 * Sends requests to the model. Retries transient errors, counts usage, and keeps the conversation within the context
 * window.
 */
export interface ModelRequests {
  send(messages: readonly string[]): Promise<ModelAnswer>;
  /** `messages` are those that people sent in the meantime. */
  submit(results: ToolResult[], messages: readonly string[]): Promise<ModelAnswer>;
  /** Parks or fails the run if its budget is spent. Every request does this too. */
  checkBudget(): Promise<void>;
}

export interface ModelRequestsOptions {
  session: ProviderSession;
  context: RunContext;
  /** In tokens; null if unknown. The service then reports when the context window is full. */
  contextWindow: number | null;
  /** USD per million tokens, for services that do not report the cost of an answer. */
  price: { input: number; output: number } | null;
  budget: BudgetKeeper;
  /** Whether to park or fail the run if the account's usage limit resets too late to wait for. */
  onUsageLimit: "park" | "fail";
  now: () => Date;
  /** Waits. Returns early when the signal aborts. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
}

/** The rest of the context window is reserved for the answer and for errors of the estimate. */
const maxFilledShare = 0.8;
/** A low estimate: code and other languages take more tokens than English. */
const charactersPerToken = 3;
/** Assumed if the context window is unknown: about the smallest that works with tools. */
const assumedContextWindow = 32_000;
const maxTruncatedCharacters = 4000;

export function createModelRequests(options: ModelRequestsOptions): ModelRequests {
  const { session, context, contextWindow, budget } = options;
  /** The size of the conversation as of the last answer. */
  let tokens = 0;

  function addUsage(usage: Usage): void {
    // The configured price takes precedence, because Claude Code reports the cost of its answers only at the end.
    const cost_usd = computeCost(usage, options.price) ?? usage.cost_usd;
    context.usage({ ...usage, cost_usd });
    budget.addUsage({ ...usage, cost_usd });
  }

  async function request(newText: string, send: (options: TurnOptions) => Promise<Turn>): Promise<ModelAnswer | null> {
    if (contextWindow !== null && tokens + newText.length / charactersPerToken > contextWindow * maxFilledShare)
      await makeRoom("window_almost_full");
    await budget.check();
    const turn = await withRetries(options, () =>
      send({ signal: context.signal, onText: (text) => context.partial({ kind: "assistant", text }) }),
    );
    if (turn === "too_long") return null;
    tokens = turn.usage.input_tokens + turn.usage.output_tokens;
    addUsage(turn.usage);
    return turn;
  }

  /** Summarizes the conversation. Returns false if it could not be shortened. */
  async function makeRoom(reason: "window_almost_full" | "too_long"): Promise<boolean> {
    let maxCharacters = ((contextWindow ?? assumedContextWindow) / 2) * charactersPerToken;
    for (;;) {
      await budget.check();
      const compactResult = await withRetries(options, () =>
        session.compact({ signal: context.signal, max_characters: maxCharacters }),
      );
      tokens = 0;
      if (compactResult === "too_long") {
        maxCharacters /= 2;
        if (maxCharacters < maxTruncatedCharacters) return false;
        continue;
      }
      if (compactResult.summary === null) return false;
      const { usage, summary, summarized, kept } = compactResult;
      await context.emit({ type: "system", subtype: "compacted", data: { why: reason, summarized, kept, summary } });
      addUsage(usage);
      return true;
    }
  }

  return {
    async send(messages) {
      const message = joinMessages(messages);
      const send = (): Promise<ModelAnswer | null> =>
        request(message, (turnOptions) => session.sendMessage(message, turnOptions));
      const turn = (await send()) ?? ((await makeRoom("too_long")) ? await send() : null);
      return turn ?? throwTooLong();
    },
    async submit(results, messages) {
      const message = messages.length === 0 ? {} : { message: joinMessages(messages) };
      const submit = (toolResults: ToolResult[]): Promise<ModelAnswer | null> =>
        request(toolResults.map(({ output }) => output).join() + (message.message ?? ""), (turnOptions) =>
          session.submitToolResults(toolResults, { ...turnOptions, ...message }),
        );
      const turn = (await submit(results)) ?? ((await makeRoom("too_long")) ? await submit(results) : null);
      if (turn) return turn;
      const truncatedResults = results.map(truncateResult);
      // Summarizing did not help, so the latest tool results must be too long.
      if (truncatedResults.some((result, index) => result !== results[index]))
        return (await submit(truncatedResults)) ?? throwTooLong();
      return throwTooLong();
    },
    checkBudget: budget.check,
  };
}

function joinMessages(messages: readonly string[]): string {
  return messages.join("\n\n");
}

function computeCost({ input_tokens, output_tokens }: Usage, price: ModelRequestsOptions["price"]): number | null {
  return price === null ? null : (input_tokens * price.input + output_tokens * price.output) / 1_000_000;
}

function truncateResult(result: ToolResult): ToolResult {
  const { output } = result;
  if (output.length <= maxTruncatedCharacters) return result;
  const start = output.slice(0, maxTruncatedCharacters);
  return {
    ...result,
    output: `${start}\n[${output.length - maxTruncatedCharacters} characters omitted: they do not fit the model's context window. Ask for less at once.]`,
  };
}

function throwTooLong(): never {
  throw new RunFailure(
    "provider_invalid_response",
    "The conversation does not fit the model's context window, even after it was summarized. Use a model with a larger context window, or give the agent a smaller task.",
  );
}

const maxTries = 4;
const maxWaitMs = 60_000;

/** Retries transient errors and records each retry. Any other error parks or fails the run. */
async function withRetries<T extends Turn | CompactResult>(
  { context, pause, onUsageLimit, now }: ModelRequestsOptions,
  request: () => Promise<T>,
): Promise<Extract<T, { ok: true }> | "too_long"> {
  const { signal } = context;
  for (let tries = 1; ; tries += 1) {
    signal.throwIfAborted();
    const result: Turn | CompactResult = await request();
    signal.throwIfAborted();
    if (result.ok) return result as Extract<T, { ok: true }>; // The compiler cannot narrow a type parameter.
    const { error } = result;
    if (error.too_long) return "too_long";
    const waitMs = getRetryDelayMs(error, tries);
    if (waitMs === null) {
      const until = onUsageLimit === "park" ? getUsageLimitResetTime(error, now()) : null;
      if (until !== null) throw new RunParked({ why: "usage_limit", until, message: error.message });
      throw new RunFailure(reasons[error.kind], error.message);
    }
    await context.emit({
      type: "system",
      subtype: "provider_retry",
      data: { ...error, tries, wait_ms: waitMs },
    });
    await pause(waitMs, signal);
  }
}

const reasons: Record<ProviderFault["kind"], FailureReason> = {
  authentication: "provider_auth",
  rate_limit: "provider_rate_limit",
  network: "provider_network",
  invalid_response: "provider_invalid_response",
};

/** Returns when the account's usage limit resets, if that is too late to wait for. */
function getUsageLimitResetTime({ kind, retry_after_ms }: ProviderFault, now: Date): string | null {
  if (kind !== "rate_limit" || retry_after_ms === undefined || retry_after_ms <= maxWaitMs) return null;
  return new Date(now.getTime() + retry_after_ms).toISOString();
}

/** Returns null if a retry would not help or would take too long. */
function getRetryDelayMs({ kind, retry_after_ms }: ProviderFault, tries: number): number | null {
  if (tries >= maxTries || kind === "authentication") return null;
  const waitMs = retry_after_ms ?? 1000 * 2 ** (tries - 1);
  return waitMs <= maxWaitMs ? waitMs : null;
}
