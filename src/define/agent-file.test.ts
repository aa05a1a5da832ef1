import { describe, expect, it, test } from "vitest";
import { describeFault } from "../model/definition-fault.ts";
import { checkAgent, parseAgentFile } from "./agent-file.ts";

function parseAgent(file: string, text: string) {
  const parsed = parseAgentFile(file, text);
  if (!parsed.ok) throw new Error(parsed.faults.map(describeFault).join("\n"));
  return parsed.agent;
}

function parseFaults(file: string, text: string) {
  const parsed = parseAgentFile(file, text);
  expect(parsed.ok).toBe(false);
  return parsed.ok ? [] : parsed.faults;
}

test("makes an agent with a command procedural, and one without a command autonomous", () => {
  expect(parseAgent("a.json", '{"name": "a", "command": "ls"}')).toMatchObject({
    type: "procedural",
    command: "ls",
    description: null,
  });
  expect(parseAgent("a.yaml", "name: a\nsystem_prompt: Be brief.\n")).toMatchObject({
    type: "autonomous",
    command: null,
  });
  expect(parseAgent("a.json", '\uFEFF{"name": "a", "command": null}').type).toBe("autonomous");
});

test("reports an unknown key with its line and the key that was probably meant", () => {
  const [json] = parseFaults("x/a.json", '{\n  "name": "a",\n  "comand": "ls"\n}');
  expect(json).toMatchObject({
    code: "DROVER-AGT-003",
    file: "x/a.json",
    line: 3,
    path: "comand",
    next: "Write command instead, or remove the key.",
  });
  expect(describeFault(json!)).toBe("x/a.json:3: unknown key comand. Did you mean command?");
  const [nested] = parseFaults("a.yaml", "name: a\npermissions:\n  mode: plan\n  allowd_tools: [x]\n");
  expect(nested).toMatchObject({
    line: 4,
    path: "permissions.allowd_tools",
    message: "unknown key permissions.allowd_tools. Did you mean allowed_tools?",
  });
  const [demand] = parseFaults("a.yaml", "name: a\ndemands:\n  hostnam: x\n");
  expect(demand).toMatchObject({ line: 3, path: "demands.hostnam", code: "DROVER-AGT-003" });
});

test("reports every fault of a file, not only the first", () => {
  const faults = parseFaults("a.yaml", "name: 3\nlist_style: tabs\nfoo: 1\n");
  expect(faults.map(({ line, path }) => [line, path])).toEqual([
    [1, "name"],
    [2, "list_style"],
    [3, "foo"],
  ]);
});

test("reports the line of a syntax error", () => {
  expect(parseFaults("a.json", '{\n "name": "a",\n}')[0]).toMatchObject({ code: "DROVER-AGT-002", line: 3 });
  expect(parseFaults("a.yaml", "name: a\ntags: [x\ncommand: y\n")[0]).toMatchObject({
    code: "DROVER-AGT-002",
    line: 3,
  });
  expect(parseFaults("a.yaml", "name: a\nmodel: !!js/function x\n")[0]).toMatchObject({
    code: "DROVER-AGT-002",
    line: 2,
  });
  expect(parseFaults("a.md", "---\nname: a\nmodel: 'x\n---\n# A\n")[0]).toMatchObject({
    code: "DROVER-AGT-002",
    line: 3,
  });
});

test("refuses endless nesting and alias expansion without crashing", () => {
  const bomb = `name: a\nmcp_servers:\n  a0: &a0 [x]\n${Array.from({ length: 9 }, (_, i) => `  a${i + 1}: &a${i + 1} [${`*a${i}, `.repeat(9)}]\n`).join("")}`;
  expect(parseFaults("a.yaml", bomb)[0]?.code).toBe("DROVER-AGT-009");
  expect(parseFaults("a.yaml", `name: ${"[".repeat(20_000)}`)[0]?.code).toBe("DROVER-AGT-009");
  expect(parseFaults("a.yaml", `name: a\ntags:\n  ${"- ".repeat(20_000)}x`)[0]?.code).toBe("DROVER-AGT-009");
  expect(
    parseFaults("a.json", `{"name":"a","mcp_servers":${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}}`),
  ).toHaveLength(1);
});

test("refuses a definition that is not an object", () => {
  for (const text of ["[]", "3", "null", '"x"']) expect(parseFaults("a.json", text)[0]?.code).toBe("DROVER-AGT-004");
  expect(parseFaults("a.yaml", "")[0]?.code).toBe("DROVER-AGT-004");
  expect(parseFaults("a.md", "---\n- x\n---\n# A\n")[0]?.code).toBe("DROVER-AGT-004");
});

test("refuses a name that cannot be used in a URL", () => {
  for (const name of ["a b", "a/b", "a@b", "", "-x", "..", "a\\nb"])
    expect(parseFaults("a.json", `{"name": "${name}"}`)[0]?.path).toBe("name");
  expect(parseAgent("a.json", '{"name": "größe_2.x"}').name).toBe("größe_2.x");
  expect(parseFaults("a.json", '{"command": "ls"}')[0]).toMatchObject({ path: "name", message: "name is missing" });
});

test("refuses a type that does not match the command", () => {
  expect(parseFaults("a.json", '{"name":"a",\n"type":"procedural"}')[0]).toMatchObject({
    path: "command",
    code: "DROVER-AGT-004",
  });
  expect(parseFaults("a.json", '{"name":"a","type":"autonomous",\n"command":"ls"}')[0]).toMatchObject({
    path: "command",
    line: 2,
  });
  expect(parseFaults("a.json", '{"name":"a","command":"  "}')[0]?.message).toContain("start with a program");
  expect(parseFaults("a.json", `{"name":"a","command":"sh -c 'x"}`)[0]?.message).toContain("never closed");
  expect(parseFaults("a.yaml", "name: a\ncommand: ls a\\")[0]).toMatchObject({
    line: 2,
    message: expect.stringContaining("the backslash at character 5 escapes nothing"),
  });
});

test("refuses a key that has no effect", () => {
  expect(
    parseFaults("a.yaml", "name: a\ncommand: ls\nmodel: x\nbudget: { cost_usd: 1 }\n").map(({ path }) => path),
  ).toEqual(["model", "budget"]);
  expect(parseFaults("a.yaml", "name: a\nexecutor: claude\nlist_style: json\noutput_schema: {}\n")).toMatchObject([
    { path: "list_style", message: "list_style has no effect on an agent of type autonomous" },
    { path: "output_schema" },
  ]);
  expect(parseAgentFile("a.yaml", "name: a\nexecutor: mine\noutput_schema: {}\n").ok).toBe(true);
});

test("refuses a schema over a limit, with its line", () => {
  expect(
    parseFaults(
      "a.yaml",
      "name: a\ncommand: x\nparameters_schema:\n  properties:\n    x:\n      $ref: https://example.com/s.json\n",
    )[0],
  ).toMatchObject({
    code: "DROVER-AGT-006",
    line: 6,
    path: "parameters_schema.properties.x.$ref",
  });
  expect(parseFaults("a.json", '{"name":"a","output_schema":{"properties":{"__proto__":{}}}}')[0]?.code).toBe(
    "DROVER-AGT-006",
  );
  const deep = `${'{"not":'.repeat(100)}{}${"}".repeat(100)}`;
  expect(parseFaults("a.json", `{"name":"a","output_schema":${deep}}`)[0]?.message).toContain("nested more than");
  expect(
    parseFaults("a.json", `{"name":"a","output_schema":{"description":"${"x".repeat(70_000)}"}}`)[0]?.message,
  ).toContain("larger than");
});

test("applies the same rules to a definition without a file", () => {
  const parsed = checkAgent({ name: "a", sytem_prompt: "x" });
  expect(parsed.ok).toBe(false);
  if (!parsed.ok) expect(parsed.faults[0]).toMatchObject({ file: null, line: null, path: "sytem_prompt" });
});

const review = `---
provider: anthropic
tags: [review]
---
<!-- kept by the platform group -->
# Code Review!

You review code.

\`\`\`sh
## not a section
# not a title
\`\`\`

### Tone
Be kind.

## Workflow
Read first.

## Report
Then write.
`;

test("reads title, system prompt and first message from a markdown agent", () => {
  expect(parseAgent("review.md", review)).toMatchObject({
    name: "code-review",
    title: "Code Review!",
    type: "autonomous",
    provider: "anthropic",
    tags: ["review"],
    system_prompt: "You review code.\n\n```sh\n## not a section\n# not a title\n```\n\n### Tone\nBe kind.",
    first_message: "## Workflow\nRead first.\n\n## Report\nThen write.",
  });
  expect(parseAgent("review.md", review.replaceAll("\n", "\r\n"))).toEqual(parseAgent("review.md", review));
});

test("takes the name of a markdown agent from its title or its front matter", () => {
  expect(parseAgent("a.md", "# Größe prüfen\nText\n")).toMatchObject({ name: "größe-prüfen", system_prompt: "Text" });
  expect(parseAgent("a.md", "---\nname: short\n---\n# A Long Title\nText")).toMatchObject({
    name: "short",
    title: "A Long Title",
  });
  expect(parseAgent("a.md", "---\nname: short\n---\nText\n## S")).toMatchObject({
    name: "short",
    system_prompt: "Text",
    first_message: "## S",
  });
  expect(parseAgent("a.md", "---\ncommand: ls\n---\n# list")).toMatchObject({ name: "list", type: "procedural" });
});

test("accepts only YAML as front matter and never executes it", () => {
  for (const opening of ["---js", "---json", "--- coffee"]) {
    expect(parseFaults("a.md", `${opening}\nmodule.exports = process.exit(3)\n---\n# A\n`)[0]).toMatchObject({
      code: "DROVER-AGT-002",
      line: 1,
    });
  }
  expect(parseFaults("a.md", "---\nname: a\n# A\n")[0]?.message).toContain("never closed");
});

test("counts the lines of faults from the start of a markdown file", () => {
  expect(parseFaults("a.md", "---\ntags: [x]\nmodle: y\n---\n# A\n")[0]).toMatchObject({ line: 3, path: "modle" });
  expect(parseFaults("a.md", "---\ntags: [x]\n---\n\n# 日本 !!\n".replace("日本", ""))[0]).toMatchObject({
    line: 5,
    path: "name",
  });
  expect(parseFaults("a.md", "<!-- kept\nhere -->\n\nSome text\n\n# A\n")[0]).toMatchObject({
    line: 4,
    message: expect.stringContaining("before the # title"),
  });
  expect(parseFaults("a.md", "---\ntags: [x\n---\n# A\n")[0]).toMatchObject({
    line: 2,
    message: expect.stringContaining("front matter is not valid YAML"),
  });
  expect(parseFaults("a.md", "---\nsystem_prompt: x\n---\n# A\ny\n")[0]).toMatchObject({
    line: 2,
    path: "system_prompt",
  });
  expect(parseFaults("a.md", "---\ntags: [x]\nmodle: y\n---\njust text")).toMatchObject([
    { line: 5, path: "name", message: expect.stringContaining("the title is missing") },
    { line: 3, path: "modle" },
  ]);
});

describe("the ## Parameters section of a markdown agent", () => {
  const parse = (section: string, front = "") =>
    parseAgentFile(
      "dev.md",
      `${front}# Developer\n\nYou develop.\n\n## Parameters\n\n${section}\n\n## Workflow\n- step: one\n`,
    );

  it("makes each parameter a required string", () => {
    const parsed = parse("- TASK_FILE: the task\n- `STATUS_FILE`: where to report\n* REPORT_FILE - the report");
    expect(parsed.ok && parsed.agent.parameters_schema).toEqual({
      type: "object",
      properties: {
        TASK_FILE: { type: "string", description: "the task" },
        STATUS_FILE: { type: "string", description: "where to report" },
        REPORT_FILE: { type: "string", description: "the report" },
      },
      required: ["TASK_FILE", "STATUS_FILE", "REPORT_FILE"],
      additionalProperties: false,
    });
  });

  it("has no effect beside a parameters_schema, which must contain each listed parameter", () => {
    const front = (name: string) =>
      `---\nparameters_schema: { type: object, properties: { ${name}: { type: integer } } }\n---\n`;
    const parsed = parse("- COUNT: how many", front("COUNT"));
    expect(parsed.ok && parsed.agent.parameters_schema).toMatchObject({ properties: { COUNT: { type: "integer" } } });
    expect(parse("- COUNT: how many", front("NUMBER"))).toMatchObject({
      ok: false,
      faults: [
        { code: "DROVER-AGT-004", line: 10, message: expect.stringContaining("COUNT is listed here but missing") },
      ],
    });
  });

  it("reports every line that is not a parameter, with its number", () => {
    expect(parse("- TASK FILE\n- A: one\n- A: two")).toMatchObject({
      ok: false,
      faults: [
        { line: 7, message: expect.stringContaining('"- TASK FILE"') },
        { line: 9, message: expect.stringContaining("A is listed twice") },
      ],
    });
  });

  it("reports the line of a parameter with a forbidden name", () => {
    expect(parse("- A: one\n- constructor: two")).toMatchObject({
      ok: false,
      faults: [{ code: "DROVER-AGT-006", line: 8, path: "parameters_schema.properties.constructor" }],
    });
  });

  it("is prose if it has no bullets", () => {
    const parsed = parse("It takes none.");
    expect(parsed.ok && parsed.agent.parameters_schema).toBeUndefined();
  });
});

test("reports the faults of schedules with their line, the reason and a suggestion", () => {
  const text = `name: a
command: ls
schedules:
  - name: seconds
    cron: "0 0 3 * * *"
  - name: berlin
    cron: "0 3 * * *"
    timezone: Europe/Berln
  - { name: berlin, every: 5s, resume_session: true }
  - { name: both, every: 1h, cron: "0 3 * * *" }
  - name: key
    evry: 1h
`;
  expect(parseFaults("a.yaml", text).map(({ code, line, path, message }) => [code, line, path, message])).toEqual([
    ["DROVER-AGT-004", 10, "schedules.3", expect.stringContaining("either cron or every")],
    ["DROVER-AGT-003", 12, "schedules.4.evry", "unknown key schedules.4.evry. Did you mean every?"],
    ["DROVER-AGT-004", 11, "schedules.4", expect.stringContaining("either cron or every")],
    ["DROVER-SCH-001", 5, "schedules.0.cron", "cron 0 0 3 * * * has 6 fields, not five"],
    ["DROVER-SCH-001", 8, "schedules.1.timezone", "unknown timezone: Europe/Berln. Did you mean Europe/Berlin?"],
    ["DROVER-SCH-001", 9, "schedules.2.name", "the schedule name berlin is used twice"],
    ["DROVER-SCH-001", 9, "schedules.2.resume_session", "a procedural agent has no session to resume"],
    ["DROVER-SCH-001", 9, "schedules.2.every", "every 5s is less than 10s"],
  ]);
  expect(parseAgent("a.yaml", "name: a\ncommand: ls\nschedules: [{ name: n, cron: 0 3 * * * }]\n")).toMatchObject({
    schedules: [{ name: "n", cron: "0 3 * * *", timezone: "UTC", overlap: "skip", catch_up: "none", enabled: true }],
  });
});
