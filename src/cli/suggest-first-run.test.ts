import { expect, it } from "vitest";
import { suggestFirstRun } from "./suggest-first-run.ts";

const createAgent = (name: string, overrides: Partial<Parameters<typeof suggestFirstRun>[0][number]> = {}) => ({
  name,
  type: "procedural" as const,
  runner_id: "r1",
  ...overrides,
});

it("suggests echo if a runner offers it", () => {
  expect(suggestFirstRun([createAgent("crawl"), createAgent("echo")])).toBe('drover run echo --message "Hello World"');
});

it("otherwise suggests another agent with its required parameters", () => {
  const parameters_schema = { type: "object", required: ["url", "depth"] };
  expect(suggestFirstRun([createAgent("crawl", { parameters_schema })])).toBe("drover run crawl --url ... --depth ...");
  expect(suggestFirstRun([createAgent("parrot", { type: "autonomous" })])).toBe('drover run parrot --prompt "..."');
});

it("suggests no agent that no runner offers", () => {
  expect(suggestFirstRun([])).toBe(null);
  expect(suggestFirstRun([createAgent("echo", { runner_id: null })])).toBe(null);
});
