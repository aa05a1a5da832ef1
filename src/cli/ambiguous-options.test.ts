import { expect, it } from "vitest";
import { ambiguousOptions } from "./ambiguous-options.ts";

const schema = { type: "object", properties: { env: { type: "string" }, timeout: { type: "number" } } };

it("an option of exec that becomes a parameter is told, unless the agent has such a parameter", () => {
  const extraOptions = [
    ["cwd", "/tmp"],
    ["cwd", "/"],
    ["message", "hi"],
  ] as const;
  expect(ambiguousOptions({ options: {}, extraOptions }, undefined, "run")).toEqual([
    "--cwd is an option of drover exec, not of drover run: the agent gets it as its parameter cwd.",
  ]);
  expect(ambiguousOptions({ options: {}, extraOptions: [["env", "test"]] }, schema, "run")).toEqual([]);
});

it("a parameter that has the name of an option is told to go into --params", () => {
  expect(
    ambiguousOptions({ options: { timeout: "5", detach: true }, extraOptions: [] }, schema, "sessions fork"),
  ).toEqual([
    "--timeout is taken as the option of drover sessions fork: the agent's parameter of that name goes into --params.",
  ]);
  expect(ambiguousOptions({ options: { timeout: "5" }, extraOptions: [] }, undefined, "run")).toEqual([]);
});
