import { expect, test } from "vitest";
import { checkAgent } from "./agent-file.ts";
import { mapHooks } from "./herdctl/map-hooks.ts";
import type { Note } from "./herdctl/source.ts";

const listFaults = (fields: object) => {
  const checked = checkAgent({ name: "a", command: "true", ...fields });
  return checked.ok ? [] : checked.faults.map(({ code, path, message }) => [code, path, message]);
};

test("accepts a command, or the next agent and its parameters, as on_finish", () => {
  const nextAgent = {
    agent: "b",
    when: "always",
    prompt: "{{/result_text}}",
    parameters: { x: { from: "/a", default: 1 } },
  };
  expect(listFaults({ on_finish: "make report" })).toEqual([]);
  expect(listFaults({ on_finish: nextAgent, webhooks: ["ops"] })).toEqual([]);
});

test.each([
  [{ agent: "x", wen: "failed" }, "on_finish.wen", "Did you mean when?"],
  [{ agent: "x", when: "never" }, "on_finish.when", "completed"],
  [{ when: "failed" }, "on_finish.agent", "is missing"],
  [7, "on_finish", "wrong value"],
  [{ agent: "x", parameters: { a: { form: "/x" } } }, "on_finish.parameters.a", "wrong value"],
  [{ agent: "x", parameters: { a: { from: "x" } } }, "on_finish.parameters.a.from", "JSON pointer"],
  [{ agent: "x", prompt: "{{x}}" }, "on_finish.prompt", "{{x}} is not a JSON pointer"],
])("names the invalid key in on_finish %j", (on_finish, path, message) => {
  expect(listFaults({ on_finish })).toContainEqual([
    expect.any(String),
    expect.stringContaining(path),
    expect.stringContaining(message),
  ]);
});

test("converts the webhooks of a herdctl agent to names, and notes the command that registers each", () => {
  const notes: Note[] = [];
  const hook = { type: "webhook", url: "https://chat.example/in?a=b", on_events: ["failed", "timeout"] };
  const keys = { hooks: { after_run: [hook, { type: "shell", command: "true" }] } };
  const source = { file: "f", keys, findLine: () => 1, notes, variables: new Set<string>() };
  expect(mapHooks([source])).toMatchObject({ webhooks: ["chat.example"], on_finish: expect.stringContaining("true") });
  expect(notes.map(({ message }) => message)).toContain(
    "became the webhook chat.example; register it: drover webhooks add chat.example 'https://chat.example/in?a=b' --named --event failed",
  );
});
