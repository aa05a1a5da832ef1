import { expect } from "vitest";
import type { Provider } from "../../src/model/provider.ts";
import type { Case } from "./contract.ts";

/** A provider in front of a scripted model: what it says is fixed, and what it was sent can be read. */
export interface ProviderSubject {
  provider: Provider;
  model: string;
  /** The next answers, in order. */
  script(
    ...answers: (
      | { text: string }
      | { tool: string; input: unknown }
      | { fail: "auth" | "rate_limit" | "cut" | "garbage" }
      | { hang: true }
    )[]
  ): void;
  /** The user and tool texts of the last request, oldest first. */
  lastRequest(): string[];
}

const options = (signal = new AbortController().signal) => ({ signal });
const tools = [
  {
    name: "file.read",
    description: "Reads a file.",
    input_schema: { type: "object", properties: { path: { type: "string" } } },
  },
];

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
    title: "hands a tool use over under its own name and takes its result",
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
    title: "a resumed session carries what was said before",
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
    [
      ["auth", "authentication"],
      ["rate_limit", "rate_limit"],
      ["cut", "network"],
      ["garbage", "invalid_response"],
    ] as const
  ).map(([fail, kind]): Case<ProviderSubject> => ({
    title: `a failed turn (${fail}) is a value that says what kind of failure it was`,
    async check(make) {
      const subject = await make();
      subject.script({ fail });
      const turn = await (await openSession(subject)).sendMessage("hi", options());
      expect(turn).toMatchObject({ ok: false, error: { kind } });
    },
  })),
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
