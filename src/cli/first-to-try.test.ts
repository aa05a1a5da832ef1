import { expect, it } from "vitest";
import { firstToTry } from "./first-to-try.ts";

const agent = (name: string, more: Partial<Parameters<typeof firstToTry>[0][number]> = {}) => ({
  name,
  type: "procedural" as const,
  runner_id: "r1",
  ...more,
});

it("names echo where it is offered", () => {
  expect(firstToTry([agent("crawl"), agent("echo")])).toBe('drover run echo --message "Hello World"');
});

it("names another agent with what it needs where echo is not", () => {
  const parameters_schema = { type: "object", required: ["url", "depth"] };
  expect(firstToTry([agent("crawl", { parameters_schema })])).toBe("drover run crawl --url ... --depth ...");
  expect(firstToTry([agent("parrot", { type: "autonomous" })])).toBe('drover run parrot --prompt "..."');
});

it("names nothing that no runner brings", () => {
  expect(firstToTry([])).toBe(null);
  expect(firstToTry([agent("echo", { runner_id: null })])).toBe(null);
});
