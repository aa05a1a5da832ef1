import type { RunContext } from "../../../model/executor.ts";
import type { Usage } from "../../../model/event.ts";
import type {
  Compacted,
  ProviderFault,
  ProviderSession,
  ToolResult,
  Turn,
  TurnOptions,
} from "../../../model/provider.ts";
import type { FailureReason } from "../../../model/states.ts";
import { RunFailure } from "../../scaffold/run-failure.ts";
import type { BudgetKeeper } from "./budget.ts";
import type { Answered } from "./loop-state.ts";
import { RunParked } from "./run-parked.ts";

/** Requests to the model: tried again where that helps, counted, and made to fit its window. */
export interface ModelAsker {
  send(messages: readonly string[]): Promise<Answered>;
  /** `messages`: what people said meanwhile. */
  submit(results: ToolResult[], messages: readonly string[]): Promise<Answered>;
  /** Parks or fails the run where its budget is spent, as each request does. */
  checkBudget(): Promise<void>;
}

export interface AskOptions {
  session: ProviderSession;
  context: RunContext;
  /** Tokens that fit the model's window; null: not known, and noticed when the service says so. */
  contextWindow: number | null;
  /** USD per million tokens, for services that do not report what an answer cost. */
  price: { input: number; output: number } | null;
  budget: BudgetKeeper;
  /** A limit of the account that ends too late to wait for parks the run, unless it is to fail. */
  onUsageLimit: "park" | "fail";
  now: () => Date;
  /** Waits, and is over at once when the signal is aborted. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
}

/** The rest is left for the answer, and for what is not counted exactly. */
const fullShare = 0.8;
/** Rather too few than too many: code and other languages take more tokens than English. */
const charactersPerToken = 3;
/** Where the window is not known: about the smallest that tools can be used with. */
const smallWindow = 32_000;
const shortResult = 4000;

export function createModelAsker(options: AskOptions): ModelAsker {
  const { session, context, contextWindow, budget } = options;
  /** As of the last answer. */
  let tokens = 0;

  function count(usage: Usage): void {
    // Claude Code tells only at the end what all its answers cost, so that a price has to come first.
    const cost_usd = costOf(usage, options.price) ?? usage.cost_usd;
    context.usage({ ...usage, cost_usd });
    budget.count({ ...usage, cost_usd });
  }

  async function ask(next: string, request: (options: TurnOptions) => Promise<Turn>): Promise<Answered | null> {
    if (contextWindow !== null && tokens + next.length / charactersPerToken > contextWindow * fullShare)
      await makeRoom("window_almost_full");
    await budget.check();
    const turn = await retried(options, () =>
      request({ signal: context.signal, onText: (text) => context.partial({ kind: "assistant", text }) }),
    );
    if (turn === "too_long") return null;
    tokens = turn.usage.input_tokens + turn.usage.output_tokens;
    count(turn.usage);
    return turn;
  }

  /** Whether there is more room now. */
  async function makeRoom(why: "window_almost_full" | "too_long"): Promise<boolean> {
    let most = ((contextWindow ?? smallWindow) / 2) * charactersPerToken;
    for (;;) {
      await budget.check();
      const compacted = await retried(options, () => session.compact({ signal: context.signal, max_characters: most }));
      tokens = 0;
      if (compacted === "too_long") {
        most /= 2;
        if (most < shortResult) return false;
        continue;
      }
      if (compacted.summary === null) return false;
      const { usage, summary, summarized, kept } = compacted;
      await context.emit({ type: "system", subtype: "compacted", data: { why, summarized, kept, summary } });
      count(usage);
      return true;
    }
  }

  return {
    async send(messages) {
      const message = joined(messages);
      const send = (): Promise<Answered | null> => ask(message, (how) => session.sendMessage(message, how));
      const turn = (await send()) ?? ((await makeRoom("too_long")) ? await send() : null);
      return turn ?? doesNotFit();
    },
    async submit(results, messages) {
      const message = messages.length === 0 ? {} : { message: joined(messages) };
      const submit = (these: ToolResult[]): Promise<Answered | null> =>
        ask(these.map(({ output }) => output).join() + (message.message ?? ""), (how) =>
          session.submitToolResults(these, { ...how, ...message }),
        );
      const turn = (await submit(results)) ?? ((await makeRoom("too_long")) ? await submit(results) : null);
      if (turn) return turn;
      const shorter = results.map(shorten);
      // what does not fit is what the tools returned just now
      if (shorter.some((result, at) => result !== results[at])) return (await submit(shorter)) ?? doesNotFit();
      return doesNotFit();
    },
    checkBudget: budget.check,
  };
}

function joined(messages: readonly string[]): string {
  return messages.join("\n\n");
}

function costOf({ input_tokens, output_tokens }: Usage, price: AskOptions["price"]): number | null {
  return price === null ? null : (input_tokens * price.input + output_tokens * price.output) / 1_000_000;
}

function shorten(result: ToolResult): ToolResult {
  const { output } = result;
  if (output.length <= shortResult) return result;
  const kept = output.slice(0, shortResult);
  return {
    ...result,
    output: `${kept}\n[${output.length - shortResult} characters left out: they do not fit the model's window. Ask for less at once.]`,
  };
}

function doesNotFit(): never {
  throw new RunFailure(
    "provider_invalid_response",
    "The conversation does not fit the model's window, even after it was summarized. Use a model with a larger window, or give the agent a smaller task.",
  );
}

const mostTries = 4;
const longestWaitMs = 60_000;

/** Again after what passes by itself, visibly; everything else ends the run with what to do about it. */
async function retried<T extends Turn | Compacted>(
  { context, pause, onUsageLimit, now }: AskOptions,
  request: () => Promise<T>,
): Promise<Extract<T, { ok: true }> | "too_long"> {
  const { signal } = context;
  for (let tries = 1; ; tries += 1) {
    signal.throwIfAborted();
    const answer: Turn | Compacted = await request();
    signal.throwIfAborted();
    if (answer.ok) return answer as Extract<T, { ok: true }>; // the compiler cannot narrow a type parameter
    const { error } = answer;
    if (error.too_long) return "too_long";
    const waitMs = waitBefore(error, tries);
    if (waitMs === null) {
      const until = onUsageLimit === "park" ? usageLimitEnd(error, now()) : null;
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

/** When the account may be used again, where that is too far away to wait for. */
function usageLimitEnd({ kind, retry_after_ms }: ProviderFault, now: Date): string | null {
  if (kind !== "rate_limit" || retry_after_ms === undefined || retry_after_ms <= longestWaitMs) return null;
  return new Date(now.getTime() + retry_after_ms).toISOString();
}

/** null: trying again would not help, or take too long. */
function waitBefore({ kind, retry_after_ms }: ProviderFault, tries: number): number | null {
  if (tries >= mostTries || kind === "authentication") return null;
  const waitMs = retry_after_ms ?? 1000 * 2 ** (tries - 1);
  return waitMs <= longestWaitMs ? waitMs : null;
}
