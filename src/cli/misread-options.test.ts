import { expect, it } from "vitest";
import { misreadOptions } from "./misread-options.ts";

const schema = { type: "object", properties: { env: { type: "string" }, timeout: { type: "number" } } };

it("an option of exec that becomes a parameter is told, unless the agent has such a parameter", () => {
  const others = [
    ["cwd", "/tmp"],
    ["cwd", "/"],
    ["message", "hi"],
  ] as const;
  expect(misreadOptions({ options: {}, others }, undefined, "run")).toEqual([
    "--cwd is an option of drover exec, not of drover run: the agent gets it as its parameter cwd.",
  ]);
  expect(misreadOptions({ options: {}, others: [["env", "test"]] }, schema, "run")).toEqual([]);
});

it("a parameter that has the name of an option is told to go into --params", () => {
  expect(misreadOptions({ options: { timeout: "5", detach: true }, others: [] }, schema, "sessions fork")).toEqual([
    "--timeout is taken as the option of drover sessions fork: the agent's parameter of that name goes into --params.",
  ]);
  expect(misreadOptions({ options: { timeout: "5" }, others: [] }, undefined, "run")).toEqual([]);
});
