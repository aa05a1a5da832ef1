import { expect } from "vitest";
import type { Provider, ProviderFault } from "../../src/model/provider.ts";
import type { Case } from "./contract.ts";

/** A provider in front of a scripted model: its answers are fixed, and what it was sent can be read. */
export interface ProviderSubject {
  provider: Provider;
  model: string;
  /** The next answers, in order. */
  script(...answers: ScriptedAnswer[]): void;
  /** The user and tool texts of the last request, oldest first. */
  lastRequest(): string[];
  /** How many requests wait for an answer, or for the rest of one, that never comes. */
  stalledCount(): number;
  /** What this provider's protocol cannot express. */
  cannot?: readonly Fault[];
  /** Failures that its protocol cannot distinguish: each is reported as the other. */
  looksLike?: Partial<Record<Fault, Fault>>;
}

export type Fault =
  | "auth"
  | "rate_limit"
  | "retry-after in milliseconds"
  | "retry-after as a date"
  | "refused"
  | "cut"
  | "garbage"
  | "malformed chunk"
  | "error in the stream"
  | "early end"
  | "cut input"
  | "stall"
  | "token limit";

export type ScriptedAnswer =
  | { text: string; token_limit?: true }
  | { tool: string; input: unknown; cut_input?: number; fault?: "ends_early" | "stalls" }
  | { tools: { name: string; input: unknown }[] }
  | { fail: Exclude<Fault, "cut input" | "stall" | "token limit" | "rate_limit" | `retry-after ${string}`> }
  | { fail: "rate_limit"; headers?: Record<string, string> }
  | { slow: string }
  | { hang: true };

const cannotExpress = ({ cannot }: ProviderSubject, fault: Fault | "retry-after in seconds"): boolean =>
  cannot?.some((one) => one === fault) === true;
const options = (signal = new AbortController().signal) => ({ signal });
const tools = [
  {
    name: "file.read",
    description: "Reads a file.",
    input_schema: { type: "object", properties: { path: { type: "string" } } },
  },
];

/** Arrives in several pieces. */
const longInput = { path: `${"a-long-name/".repeat(20)}a.txt` };

const acceptedKinds: Partial<Record<Fault, readonly ProviderFault["kind"][]>> = {
  auth: ["authentication"],
  rate_limit: ["rate_limit"],
  refused: ["network"],
  cut: ["network"],
  garbage: ["invalid_response"],
  "malformed chunk": ["invalid_response"],
  // Services differ in whether they report "overloaded" or something unreadable.
  "error in the stream": ["rate_limit", "network", "invalid_response"],
  "early end": ["invalid_response"],
};

async function openSession({ provider, model }: ProviderSubject) {
  return provider.createSession({ model, system_prompt: "Be brief.", tools });
}

export const providerContract: readonly Case<ProviderSubject>[] = [
  {
    title: "answers a message with the model's text and its usage",
    async check(make) {
      const subject = await make();
      subject.script({ text: "hello" });
      const turn = await (await openSession(subject)).sendMessage("hi", options());
      expect(turn).toMatchObject({ ok: true, text: "hello", tool_uses: [], stop: "end" });
      if (turn.ok) expect(turn.usage.input_tokens).toBeGreaterThan(0);
    },
  },
  {
    title: "passes a tool use on under its own name and takes its result",
    async check(make) {
      const subject = await make();
      subject.script({ tool: "file.read", input: { path: "a.txt" } }, { text: "it says x" });
      const session = await openSession(subject);
      const first = await session.sendMessage("read a.txt", options());
      expect(first).toMatchObject({
        ok: true,
        stop: "tool_use",
        tool_uses: [{ name: "file.read", input: { path: "a.txt" } }],
      });
      if (!first.ok) return;
      const results = first.tool_uses.map(({ tool_use_id }) => ({ tool_use_id, output: "x", is_error: false }));
      expect(await session.submitToolResults(results, options())).toMatchObject({ ok: true, text: "it says x" });
      expect(subject.lastRequest()).toContain("x");
    },
  },
  {
    title: "the model reads what a person says after the results of its tools",
    async check(make) {
      const subject = await make();
      subject.script({ tool: "file.read", input: { path: "a.txt" } }, { text: "it says x" }, { text: "goodbye" });
      const session = await openSession(subject);
      const first = await session.sendMessage("read a.txt", options());
      expect(first).toMatchObject({ ok: true, stop: "tool_use" });
      if (!first.ok) return;
      const results = first.tool_uses.map(({ tool_use_id }) => ({ tool_use_id, output: "x", is_error: false }));
      const turn = await session.submitToolResults(results, { ...options(), message: "and hurry" });
      expect(turn).toMatchObject({ ok: true, text: "it says x" });
      // In one message or two, depending on the protocol.
      expect(subject.lastRequest().slice(-2).sort()).toEqual(["and hurry", "x"]);
      expect(await session.sendMessage("thanks", options())).toMatchObject({ ok: true, text: "goodbye" });
      expect(subject.lastRequest().slice(-3).sort()).toEqual(["and hurry", "thanks", "x"]);
    },
  },
  {
    title: "a resumed session includes what was said before",
    async check(make) {
      const subject = await make();
      subject.script({ text: "one" }, { text: "two" });
      const { session_id, ...session } = await openSession(subject);
      await session.sendMessage("first", options());
      const resumed = await subject.provider.resumeSession(session_id);
      await resumed!.sendMessage("second", options());
      expect(subject.lastRequest()).toEqual(expect.arrayContaining(["first", "second"]));
    },
  },
  {
    title: "an unknown session is null",
    async check(make) {
      const { provider } = await make();
      expect(await provider.resumeSession("00000000-0000-7000-8000-000000000000")).toBeNull();
    },
  },
  ...(
    ["auth", "rate_limit", "refused", "cut", "garbage", "malformed chunk", "error in the stream", "early end"] as const
  ).map((fail): Case<ProviderSubject> => ({
    title: `a failed turn (${fail}) is a value with the kind of failure and what to do`,
    async check(make) {
      const subject = await make();
      const session = await openSession(subject);
      if (cannotExpress(subject, fail)) return;
      subject.script({ fail });
      const turn = await session.sendMessage("hi", options());
      expect(turn).toMatchObject({ ok: false, error: { message: expect.stringMatching(/Check|Try|cancelled/) } });
      if (!turn.ok) expect(acceptedKinds[subject.looksLike?.[fail] ?? fail]).toContain(turn.error.kind);
      // The session is unchanged: sending the message again does not duplicate it.
      subject.script({ text: "better" });
      expect(await session.sendMessage("hi", options())).toMatchObject({ ok: true, text: "better" });
      expect(subject.lastRequest().filter((text) => text === "hi")).toHaveLength(1);
    },
  })),
  ...(
    [
      ["in seconds", () => ({ "retry-after": "7" }), [6_900, 7_000]],
      ["in milliseconds", () => ({ "retry-after-ms": "1500", "retry-after": "9" }), [1_400, 1_500]],
      ["as a date", () => ({ "retry-after": new Date(Date.now() + 3_600_000).toUTCString() }), [3_000_000, 3_600_000]],
    ] as const
  ).map(([form, headers, [least, most]]): Case<ProviderSubject> => ({
    title: `a rate limit says when to retry, given ${form}`,
    async check(make) {
      const subject = await make();
      const session = await openSession(subject);
      if (cannotExpress(subject, "rate_limit") || cannotExpress(subject, `retry-after ${form}`)) return;
      subject.script({ fail: "rate_limit", headers: headers() });
      const turn = await session.sendMessage("hi", options());
      expect(turn).toMatchObject({ ok: false, error: { kind: "rate_limit" } });
      if (turn.ok) return;
      expect(turn.error.retry_after_ms).toBeGreaterThanOrEqual(least);
      expect(turn.error.retry_after_ms).toBeLessThanOrEqual(most);
    },
  })),
  {
    title: "summarizes the beginning of a conversation, and keeps the first message and open calls",
    async check(make) {
      const subject = await make();
      const reads = { tool: "file.read", input: { path: "a.txt" } };
      // Whether the summary uses up a scripted answer is up to the provider.
      subject.script(reads, reads, { text: "after" }, { text: "after" });
      const session = await openSession(subject);
      const listResults = (output: string) =>
        session.pending.map(({ tool_use_id }) => ({ tool_use_id, output, is_error: false }));
      await session.sendMessage("the task", options());
      expect(await session.compact({ ...options(), max_characters: 1000 })).toEqual({ ok: true, summary: null });
      await session.submitToolResults(listResults("first result"), options());
      const compacted = await session.compact({ ...options(), max_characters: 1000 });
      expect(compacted).toMatchObject({ ok: true, summary: expect.stringMatching(/./), summarized: 3, kept: 1 });
      // A resumed session has the summary too.
      const resumed = (await subject.provider.resumeSession(session.session_id))!;
      expect(resumed.pending).toHaveLength(1);
      const turn = await resumed.submitToolResults(listResults("second result"), options());
      expect(turn).toMatchObject({ ok: true, text: "after" });
      const [first, ...rest] = subject.lastRequest();
      expect(first).toMatch(/^the task\n\n<summary>/);
      expect(rest).toEqual(["second result"]);
    },
  },
  {
    title: "passes on several tool uses of one answer, and the model gets each result",
    async check(make) {
      const subject = await make();
      const reads = ["a.txt", "b.txt"].map((path) => ({ name: "file.read", input: { path } }));
      subject.script({ tools: reads }, { text: "both read" });
      const session = await openSession(subject);
      const first = await session.sendMessage("read both", options());
      expect(first).toMatchObject({ ok: true, stop: "tool_use", tool_uses: reads });
      expect(session.pending).toMatchObject(reads);
      if (!first.ok) return;
      const results = first.tool_uses.map(({ tool_use_id }, index) => ({
        tool_use_id,
        output: `content ${index}`,
        is_error: index === 1,
      }));
      expect(await session.submitToolResults(results, options())).toMatchObject({ ok: true, text: "both read" });
      expect(subject.lastRequest()).toEqual(expect.arrayContaining(["content 0", "content 1"]));
      expect(session.pending).toEqual([]);
      expect(session.last_message).toBe("both read");
    },
  },
  {
    title: "a truncated input is passed on as an error of that call",
    async check(make) {
      const subject = await make();
      const session = await openSession(subject);
      if (cannotExpress(subject, "cut input")) return;
      subject.script({ tool: "file.read", input: { path: "a.txt" }, cut_input: 9 }, { text: "I try again" });
      const turn = await session.sendMessage("read", options());
      expect(turn).toMatchObject({
        ok: true,
        tool_uses: [{ name: "file.read", fault: expect.stringContaining("JSON") }],
      });
      const [use] = session.pending;
      const result = { tool_use_id: use!.tool_use_id, output: "not valid", is_error: true };
      expect(await session.submitToolResults([result], options())).toMatchObject({ ok: true, text: "I try again" });
    },
  },
  {
    title: "an answer that ends in the middle of a tool's input is a failed turn and leaves no call",
    async check(make) {
      const subject = await make();
      const session = await openSession(subject);
      if (cannotExpress(subject, "early end") || cannotExpress(subject, "cut input")) return;
      subject.script({ tool: "file.read", input: longInput, fault: "ends_early" });
      const turn = await session.sendMessage("read it", options());
      expect(turn).toMatchObject({ ok: false });
      if (!turn.ok) expect(acceptedKinds[subject.looksLike?.["early end"] ?? "early end"]).toContain(turn.error.kind);
      expect(session).toMatchObject({ pending: [], last_message: null });
      subject.script({ text: "better" });
      expect(await session.sendMessage("read it", options())).toMatchObject({ ok: true, text: "better" });
      expect(subject.lastRequest()).toEqual(["read it"]);
    },
  },
  {
    title: "an answer that reached the output token limit says so, and stays in the conversation",
    async check(make) {
      const subject = await make();
      const session = await openSession(subject);
      if (cannotExpress(subject, "token limit")) return;
      // A provider's program may ask for the rest on its own before it is stopped.
      subject.script({ text: "only the beginning", token_limit: true }, { text: "the rest" }, { text: "the rest" });
      const turn = await session.sendMessage("hi", options());
      expect(turn).toMatchObject({ ok: true, text: "only the beginning", stop: "length" });
      expect(session.last_message).toBe("only the beginning");
      expect(await session.sendMessage("go on", options())).toMatchObject({ ok: true, text: "the rest", stop: "end" });
      expect(subject.lastRequest()).toEqual(["hi", "go on"]);
    },
  },
  {
    title: "a resumed session knows the last message, and which tools wait for their result",
    async check(make) {
      const subject = await make();
      subject.script({ text: "one" }, { tool: "file.read", input: { path: "a.txt" } }, { text: "three" });
      const session = await openSession(subject);
      await session.sendMessage("first", options());
      await session.sendMessage("second", options());
      const resumed = await subject.provider.resumeSession(session.session_id);
      expect(resumed!.pending).toMatchObject([{ name: "file.read", input: { path: "a.txt" } }]);
      const { tool_use_id } = resumed!.pending[0]!;
      const turn = await resumed!.submitToolResults([{ tool_use_id, output: "x", is_error: false }], options());
      expect(turn).toMatchObject({ ok: true, text: "three" });
      expect(subject.lastRequest()).toEqual(expect.arrayContaining(["first", "second", "x"]));
    },
  },
  {
    title: "text arrives in pieces, and the pieces are the text",
    async check(make) {
      const subject = await make();
      subject.script({ text: "a message that is long enough to be sent in pieces" });
      const pieces: string[] = [];
      const turn = await (
        await openSession(subject)
      ).sendMessage("hi", { ...options(), onText: (delta) => pieces.push(delta) });
      expect(turn).toMatchObject({ ok: true, text: pieces.join("") });
      expect(pieces.join("")).toContain("long enough");
    },
  },
  {
    title: "a turn aborted before it begins sends nothing",
    async check(make) {
      const subject = await make();
      subject.script({ text: "never" });
      const session = await openSession(subject);
      expect(await session.sendMessage("hi", options(AbortSignal.abort("user")))).toMatchObject({ ok: false });
      expect(session.last_message).toBeNull();
    },
  },
  {
    title: "a turn aborted before its answer begins ends the request and leaves no message",
    async check(make) {
      const subject = await make();
      const session = await openSession(subject);
      if (cannotExpress(subject, "stall")) return;
      subject.script({ hang: true });
      const abort = new AbortController();
      const turn = session.sendMessage("hi", options(abort.signal));
      await expect.poll(() => subject.stalledCount(), { interval: 20 }).toBe(1);
      abort.abort("user");
      expect(await turn).toMatchObject({ ok: false, error: { message: expect.stringContaining("cancelled") } });
      await expect.poll(() => subject.stalledCount(), { interval: 20 }).toBe(0);
      expect(session.last_message).toBeNull();
      subject.script({ text: "better" });
      expect(await session.sendMessage("hi", options())).toMatchObject({ ok: true, text: "better" });
      expect(subject.lastRequest()).toEqual(["hi"]);
    },
  },
  {
    title: "a turn aborted in the middle of its text does not become part of the conversation",
    async check(make) {
      const subject = await make();
      subject.script({ slow: "some text that takes its time" }, { text: "after" });
      const abort = new AbortController();
      const session = await openSession(subject);
      const turn = await session.sendMessage("hi", { signal: abort.signal, onText: () => abort.abort("user") });
      expect(turn).toMatchObject({ ok: false });
      expect(session.last_message).toBeNull();
    },
  },
  {
    title: "a turn aborted in the middle of a tool's input ends the request and leaves no call",
    async check(make) {
      const subject = await make();
      const session = await openSession(subject);
      if (cannotExpress(subject, "stall")) return;
      subject.script({ tool: "file.read", input: longInput, fault: "stalls" });
      const abort = new AbortController();
      const turn = session.sendMessage("read it", options(abort.signal));
      await expect.poll(() => subject.stalledCount(), { interval: 20 }).toBe(1);
      abort.abort("user");
      expect(await turn).toMatchObject({ ok: false, error: { message: expect.stringContaining("cancelled") } });
      // The service does not go on generating an answer that nobody reads.
      await expect.poll(() => subject.stalledCount(), { interval: 20 }).toBe(0);
      expect(session).toMatchObject({ pending: [], last_message: null });
      subject.script({ text: "better" });
      expect(await session.sendMessage("read it", options())).toMatchObject({ ok: true, text: "better" });
      expect(subject.lastRequest()).toEqual(["read it"]);
    },
  },
  {
    title: "a turn aborted after the last token of its text does not become part of the conversation",
    async check(make) {
      const subject = await make();
      const session = await openSession(subject);
      const text = "some text that takes its time";
      subject.script({ slow: text });
      const abort = new AbortController();
      let received = "";
      const onText = (delta: string): void => {
        received += delta;
        if (received === text) abort.abort("user");
      };
      const turn = await session.sendMessage("hi", { signal: abort.signal, onText });
      expect(received).toBe(text);
      expect(turn).toMatchObject({ ok: false, error: { message: expect.stringContaining("cancelled") } });
      expect(session.last_message).toBeNull();
    },
  },
  {
    title: "an abort after the end of a turn changes neither its answer nor the next one",
    async check(make) {
      const subject = await make();
      const session = await openSession(subject);
      subject.script({ text: "one" }, { text: "two" });
      const abort = new AbortController();
      expect(await session.sendMessage("first", options(abort.signal))).toMatchObject({ ok: true, text: "one" });
      abort.abort("user");
      expect(session.last_message).toBe("one");
      expect(await session.sendMessage("second", options())).toMatchObject({ ok: true, text: "two" });
      expect(subject.lastRequest()).toEqual(["first", "second"]);
    },
  },
  {
    title: "a turn aborted while it answers tool results leaves their calls open",
    async check(make) {
      const subject = await make();
      subject.script({ tool: "file.read", input: { path: "a.txt" } }, { hang: true });
      const session = await openSession(subject);
      await session.sendMessage("read a.txt", options());
      const results = session.pending.map(({ tool_use_id }) => ({ tool_use_id, output: "x", is_error: false }));
      const abort = new AbortController();
      const turn = session.submitToolResults(results, options(abort.signal));
      abort.abort("user");
      expect(await turn).toMatchObject({ ok: false });
      expect(session.pending).toMatchObject([{ name: "file.read", input: { path: "a.txt" } }]);
    },
  },
  {
    title: "an aborted turn ends at once, as a value",
    async check(make) {
      const subject = await make();
      subject.script({ hang: true });
      const abort = new AbortController();
      const turn = (await openSession(subject)).sendMessage("hi", options(abort.signal));
      abort.abort("user");
      expect(await turn).toMatchObject({ ok: false });
    },
  },
];
