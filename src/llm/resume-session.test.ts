import { expect, it } from "vitest";
import { createProvider, type Generate } from "./conversation.ts";

it("resumes a session with another model if one is named, and otherwise keeps its own", async () => {
  const states = new Map<string, unknown>();
  const models: string[] = [];
  const generate: Generate = async ({ options }) => {
    models.push(options.model);
    const usage = { input_tokens: 0, output_tokens: 0, cost_usd: 0 };
    return { ok: true, parts: [{ type: "text", text: "yes" }], usage, stop: "end" };
  };
  const store = {
    load: async (id: string) => states.get(id) ?? null,
    save: async (id: string, state: unknown) => void states.set(id, state),
  };
  const provider = createProvider("test", { generate }, store, () => "s");
  const { signal } = new AbortController();
  const session = await provider.createSession({ model: "first", system_prompt: null, tools: [] });
  await session.sendMessage("one", { signal });
  for (const model of [undefined, "second", undefined]) {
    const resumed = (await provider.resumeSession("s", model))!;
    expect(resumed.model).toBe(model ?? models.at(-1));
    await resumed.sendMessage("more", { signal });
  }
  expect(models).toEqual(["first", "first", "second", "second"]);
});
