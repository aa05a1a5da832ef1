import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { drover, createDirectory } from "./drover.ts";

/** Creates a project with these herdctl files and returns a function that runs `drover import herdctl` in it. */
function project(files: Record<string, string>) {
  const cwd = createDirectory();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true });
    writeFileSync(join(cwd, path), text);
  }
  const read = (path: string): unknown => parse(readFileSync(join(cwd, path), "utf8"));
  return {
    cwd,
    read,
    bring: (...words: string[]) => drover(["import", "herdctl", ...words], { cwd }),
    check: (...words: string[]) => drover(["agents", "check", ...words], { cwd }),
  };
}

const fleet = {
  "herdctl.yaml": `version: 1
fleet: { name: shop, description: Keeps the shop in order }
defaults:
  model: claude-sonnet-4-5
  permission_mode: acceptEdits
  denied_tools: [WebSearch]
  session: { timeout: 30m, max_turns: 25 }
  mcp_servers:
    tickets:
      command: npx
      args: [-y, tickets-mcp]
      env: { TOKEN: "\${TICKETS_TOKEN}", REGION: "\${REGION:-eu}" }
agents:
  - path: agents/prices.yaml
  - path: agents/builder.yaml
    overrides:
      max_turns: 99
      hooks: { after_run: [] }
fleets:
  - path: sub/herdctl.yml
    name: web
web: { enabled: true, port: 3232 }
`,
  "agents/prices.yaml": `name: prices
description: Compares prices
system_prompt: |
  You compare prices.
default_prompt: Compare them now.
max_turns: 15
workspace: ../data
allowed_tools: [WebFetch, Read]
denied_tools: [Bash]
schedules:
  check: { type: interval, interval: 4h }
  morning:
    type: cron
    expression: "0 9 * * *"
    prompt: Good morning
  hook: { type: webhook }
  never: { cron: "0 0 30 2 *" }
hooks:
  after_run:
    - type: shell
      name: tell
      command: echo "it's over"
    - { type: discord, bot_token_env: T, channel_id: "\${CHANNEL_ID}" }
  on_error:
    - { type: shell, command: "echo failed >&2", timeout: 5000 }
chat: { discord: { bot_token_env: T, guilds: [] } }
`,
  "agents/builder.yaml": `name: builder
working_directory: { root: /srv/code, auto_clone: true }
permission_mode: dontAsk
runtime: cli
setting_sources: [user, project]
instances: { max_concurrent: 2 }
docker: { enabled: true, memory: 4g }
hooks:
  after_run:
    - { type: shell, command: make report }
mcp_servers:
  docs: { type: http, url: "https://docs.example/mcp", headers: { authorization: "Bearer \${DOCS}" }, timeout: 9000 }
  old: { type: sse, url: "https://old.example/sse" }
`,
  "sub/herdctl.yml": `defaults: { model: claude-opus-4-1, permission_mode: plan }
agents:
  - path: reviewer.yaml
`,
  "sub/reviewer.yaml": `name: reviewer
permissions: { mode: bypassPermissions, bash: { allowed_commands: [git], denied_patterns: ["rm -rf *"] } }
tols: [Read]
`,
  ".env": "TICKETS_TOKEN=x\n",
};

it("maps every key that has an equivalent, and reports all others with file and line", async () => {
  const { cwd, bring, read, check } = project(fleet);
  const importResult = await bring("herdctl.yaml", "--out", "drover/agents");
  expect(importResult.code, importResult.stderr).toBe(0);
  expect(importResult.stdout.trim().split("\n")).toEqual([
    "drover/agents/fleet.yaml",
    "drover/agents/prices.yaml",
    "drover/agents/builder.yaml",
    "drover/agents/web.reviewer.yaml",
  ]);
  expect(read("drover/agents/fleet.yaml")).toEqual({
    description: "Keeps the shop in order",
    defaults: {
      executor: "claude-sdk",
      model: "claude-sonnet-4-5",
      max_turns: 25,
      permissions: { mode: "acceptEdits", denied_tools: ["WebSearch"] },
      session: { timeout: 1800 },
      mcp_servers: {
        tickets: {
          command: "npx",
          args: ["-y", "tickets-mcp"],
          env: { TOKEN: "${TICKETS_TOKEN}", REGION: "${REGION:-eu}" },
        },
      },
    },
    agents: [{ path: "prices.yaml" }, { path: "builder.yaml" }, { path: "web.reviewer.yaml" }],
  });
  expect(read("drover/agents/prices.yaml")).toEqual({
    name: "prices",
    description: "Compares prices",
    system_prompt: "You compare prices.\n",
    max_turns: 15,
    working_directory: "../../data",
    permissions: { allowed_tools: ["WebFetch", "Read"], denied_tools: ["Bash"] },
    schedules: [
      { name: "check", every: "4h", prompt: "Compare them now." },
      { name: "morning", cron: "0 9 * * *", prompt: "Good morning" },
    ],
    on_finish: expect.stringContaining("sh -c"),
  });
  expect(read("drover/agents/builder.yaml")).toEqual({
    name: "builder",
    working_directory: expect.stringMatching(/\/srv\/code$/),
    permissions: { mode: "default" },
    executor: "claude",
    trust_project_settings: true,
    max_concurrent: 2,
    max_turns: 99,
    mcp_servers: {
      docs: { type: "http", url: "https://docs.example/mcp", headers: { authorization: "Bearer ${DOCS}" } },
    },
  });
  expect(read("drover/agents/web.reviewer.yaml")).toEqual({
    name: "web.reviewer",
    model: "claude-opus-4-1",
    permissions: {
      mode: "bypassPermissions",
      allowed_tools: ["Bash(git:*)"],
      denied_tools: ["Bash(rm -rf:*)"],
    },
    working_directory: "../../sub",
  });
  const notes = importResult.stderr.replaceAll(`${cwd}/`, "").split("\n");
  for (const expected of [
    "herdctl.yaml:22: web has no equivalent",
    "agents/prices.yaml:5: default_prompt has no equivalent except in schedules",
    "agents/prices.yaml:11: schedules.check starts a new session each time",
    "agents/prices.yaml:12: schedules.morning runs in UTC",
    "agents/prices.yaml:12: schedules.morning starts a new session each time",
    "agents/prices.yaml:16: schedules.hook of type webhook has no equivalent",
    "agents/prices.yaml:17: schedules.never was skipped: cron 0 0 30 2 * never occurs",
    "agents/prices.yaml:23: hooks.after_run.1 of type discord has no equivalent",
    "agents/prices.yaml:25: hooks.on_error.0.timeout has no equivalent",
    "agents/prices.yaml:26: chat has no equivalent",
    "agents/builder.yaml:2: working_directory.auto_clone has no equivalent",
    "agents/builder.yaml:3: permission_mode dontAsk became `default`",
    "agents/builder.yaml:5: setting_sources user has no equivalent",
    "agents/builder.yaml:7: docker has no equivalent",
    "agents/builder.yaml:12: mcp_servers.docs.timeout has no equivalent",
    "agents/builder.yaml:13: mcp_servers.old uses SSE",
    "sub/reviewer.yaml:2: permissions.bash became tools like Bash(git:*)",
    "sub/reviewer.yaml:3: tols is an unknown key",
    "The agents use DOCS, REGION, TICKETS_TOKEN: list them in allow_env",
    "herdctl reads .env: start the runner with --env-file",
    "To use the agents, add `agents: drover/agents` to drover.yaml.",
    "Imported 3 agents;",
  ])
    expect(
      notes.filter((line) => line.startsWith(expected)),
      `${expected}\n${importResult.stderr}`,
    ).toHaveLength(1);
  const checked = await check("drover/agents");
  expect([checked.code, checked.stdout], checked.stderr).toEqual([0, "ok prices\nok builder\nok web.reviewer\n"]);
  const shell = (read("drover/agents/prices.yaml") as { on_finish: string }).on_finish;
  const hookOutput = await drover(["exec", "--", "sh", "-c", `DROVER_RUN_STATUS=failed ${shell}`], { cwd });
  expect([hookOutput.stdout, hookOutput.stderr]).toEqual(["it's over\n", expect.stringContaining("failed")]);
});

it("never overwrites without --force, and names the existing files", async () => {
  const { cwd, bring } = project({ "herdctl.yaml": "agents: [{ path: a.yaml }]\n", "a.yaml": "name: a\n" });
  mkdirSync(join(cwd, "drover-agents"));
  writeFileSync(join(cwd, "drover-agents", "a.yaml"), "mine\n");
  const withoutForce = await bring(".");
  expect([withoutForce.code, withoutForce.stdout], withoutForce.stderr).toEqual([2, ""]);
  expect(withoutForce.stderr).toContain("drover-agents/a.yaml");
  expect(readdirSync(join(cwd, "drover-agents"))).toEqual(["a.yaml"]);
  expect(readFileSync(join(cwd, "drover-agents", "a.yaml"), "utf8")).toBe("mine\n");
  expect((await bring(".", "--force")).code).toBe(0);
  expect(readFileSync(join(cwd, "drover-agents", "a.yaml"), "utf8")).toContain("name: a");
});

it("exits with 1 if a file cannot be read, and imports the others", async () => {
  const { bring, cwd } = project({
    "herdctl.yaml":
      "agents:\n  - path: good.yaml\n  - path: missing.yaml\n  - path: broken.yaml\nfleets:\n  - path: ./herdctl.yaml\n",
    "good.yaml": "name: good\n",
    "broken.yaml": "name: x\n  model: [\n",
  });
  const importResult = await bring(".", "--json");
  expect(importResult.code).toBe(1);
  const answer: { agents: string[]; faults: { file: string; line: number | null; message: string }[] } = JSON.parse(
    importResult.stdout,
  );
  expect(answer.agents).toEqual(["good"]);
  expect(answer.faults.map(({ file, message }) => `${file.slice(cwd.length + 1)} ${message}`)).toEqual([
    "missing.yaml cannot be read (ENOENT)",
    expect.stringMatching(/^broken.yaml the file is not valid YAML/),
    "herdctl.yaml the fleet includes itself",
  ]);
  const nothing = await bring("nowhere");
  expect(nothing.code).toBe(1);
  expect(nothing.stderr).toContain("nowhere: cannot be read (ENOENT)");
  const empty = await bring(createDirectory());
  expect([empty.code, empty.stderr]).toEqual([2, expect.stringContaining("has no herdctl.yaml")]);
  expect(existsSync(join(cwd, "drover-agents", "good.yaml"))).toBe(true);
});

it("imports the file of one agent", async () => {
  const { bring, read } = project({ "coder.yaml": "name: coder\nmodel: claude-opus-4-1\n" });
  expect((await bring("coder.yaml", "--out", "out")).code).toBe(0);
  expect(read("out/coder.yaml")).toEqual({ name: "coder", model: "claude-opus-4-1", working_directory: ".." });
});
