import { expect, it } from "vitest";
import { findAmbiguousOptions } from "./ambiguous-options.ts";

const schema = { type: "object", properties: { env: { type: "string" }, timeout: { type: "number" } } };

it("warns about an exec option that becomes a parameter, unless the agent has that parameter", () => {
  const extraOptions = [
    ["cwd", "/tmp"],
    ["cwd", "/"],
    ["message", "hi"],
  ] as const;
  expect(findAmbiguousOptions({ options: {}, extraOptions }, undefined, "run")).toEqual([
    "--cwd is an option of drover exec, not of drover run. It is passed to the agent as the parameter cwd.",
  ]);
  expect(findAmbiguousOptions({ options: {}, extraOptions: [["env", "test"]] }, schema, "run")).toEqual([]);
});

it("warns that a parameter with the name of an option has to go into --params", () => {
  expect(
    findAmbiguousOptions({ options: { timeout: "5", detach: true }, extraOptions: [] }, schema, "sessions fork"),
  ).toEqual([
    "--timeout is read as an option of drover sessions fork. Use --params to set the agent's parameter of that name.",
  ]);
  expect(findAmbiguousOptions({ options: { timeout: "5" }, extraOptions: [] }, undefined, "run")).toEqual([]);
});
