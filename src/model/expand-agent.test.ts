import { expect, test } from "vitest";
import { agentSchema } from "./agent.ts";
import { describeVariableFault, expandAgent, expandText } from "./expand-agent.ts";

const variables = { allowed: ["TOKEN", "UNSET"], env: { TOKEN: "s3 cret", HOME: "/root" } };

test("expands an allowed variable at any depth of the expanded fields", () => {
  const agent = agentSchema.parse({
    name: "a",
    type: "autonomous",
    system_prompt: "Use ${TOKEN}.",
    mcp_servers: { github: { args: ["--token", "${TOKEN}"], env: { T: "x${TOKEN}y${TOKEN}" } } },
  });
  const { agent: expanded, faults } = expandAgent(agent, variables);
  expect(faults).toEqual([]);
  expect(expanded.system_prompt).toBe("Use s3 cret.");
  expect(expanded.mcp_servers).toEqual({
    github: { args: ["--token", "s3 cret"], env: { T: "xs3 cretys3 cret" } },
  });
  expect(agent.system_prompt).toBe("Use ${TOKEN}.");
});

test("reports a variable that is not allowed, even if it is set", () => {
  const { text, faults } = expandText("${HOME} and ${TOKEN}", "model", variables);
  expect(text).toBe("${HOME} and s3 cret");
  expect(faults).toEqual([{ variable: "HOME", path: "model", reason: "not_allowed" }]);
  expect(describeVariableFault(faults[0]!)).toContain("${HOME} in model is not allowed");
});

test("reports an allowed variable that is not set instead of using an empty string", () => {
  expect(expandText("${UNSET}", "model", variables).faults).toEqual([
    { variable: "UNSET", path: "model", reason: "not_set" },
  ]);
});

test("does not mistake inherited object properties for variables", () => {
  expect(expandText("${constructor}", "model", { allowed: [], env: {} }).faults[0]?.reason).toBe("not_allowed");
});

test("treats $$ as an escape and leaves other dollars alone", () => {
  expect(expandText("$${HOME} $HOME ${a.b} ${1} $", "model", variables)).toEqual({
    text: "${HOME} $HOME ${a.b} ${1} $",
    faults: [],
  });
});

test("does not expand schemas or the command", () => {
  const agent = agentSchema.parse({
    name: "a",
    type: "procedural",
    command: "run ${TOKEN}",
    parameters_schema: { pattern: "${TOKEN}" },
  });
  expect(expandAgent(agent, variables)).toEqual({ agent, faults: [] });
});

test("uses the default for an unset variable, but not for one that is not allowed", () => {
  expect(expandText("${UNSET:-fall back}, ${TOKEN:-x}, ${UNSET:-}.", "model", variables)).toEqual({
    text: "fall back, s3 cret, .",
    faults: [],
  });
  expect(expandText("${HOME:-x}", "model", variables).faults).toMatchObject([
    { variable: "HOME", reason: "not_allowed" },
  ]);
});
