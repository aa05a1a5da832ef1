import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

interface Entry {
  text: string;
  /** The file's name without its ending. */
  page: string;
}

export const start = present([
  { text: "What Drover is", page: "index" },
  { text: "Your first five minutes", page: "start" },
  { text: "Glossary", page: "glossary" },
  { text: "Troubleshooting", page: "troubleshooting" },
]);

export const guides = present([
  { text: "Procedural agents", page: "procedural-agents" },
  { text: "Coding agents", page: "clients" },
  { text: "Claude Agent SDK", page: "claude-sdk" },
  { text: "Models and tools", page: "models" },
  { text: "File tools", page: "file-tools" },
  { text: "Approvals", page: "approvals" },
  { text: "Chat", page: "chat" },
  { text: "Connect Drover to other systems", page: "triggers" },
  { text: "Schedules", page: "schedules" },
  { text: "Webhooks and chains", page: "webhooks" },
  { text: "Agents as MCP tools", page: "mcp" },
  { text: "Your own executor", page: "writing-executors" },
  { text: "Your own provider", page: "writing-providers" },
  { text: "The library", page: "library" },
  { text: "A fleet", page: "fleet" },
  { text: "Security", page: "security" },
]);

export const operate = present([
  { text: "Deploying", page: "deploying" },
  { text: "Operating", page: "operating" },
  { text: "Monitoring", page: "monitoring" },
  { text: "Tokens", page: "tokens" },
  { text: "Isolation and limits", page: "isolation" },
  { text: "Redaction", page: "redaction" },
  { text: "Audit", page: "audit" },
  { text: "SQLite to PostgreSQL", page: "migrating" },
  { text: "Importing from herdctl", page: "import" },
]);

export const reference = present([
  { text: "Commands", page: "commands" },
  { text: "All commands and options", page: "all-commands" },
  { text: "drover.yaml", page: "configuration" },
  { text: "Agent keys", page: "agents" },
  { text: "Profile keys", page: "profiles" },
  { text: "HTTP API", page: "http" },
  { text: "All routes", page: "routes" },
  { text: "Errors", page: "errors" },
  { text: "Events", page: "events" },
  { text: "States and reasons", page: "states" },
  { text: "Environment variables", page: "environment" },
]);

export const internals = present([
  { text: "Path of a run", page: "path-of-a-run" },
  { text: "The runner", page: "runner" },
  { text: "Performance", page: "performance" },
  { text: "Torture", page: "torture" },
  { text: "The test kit", page: "testing" },
]);

/** The pages of docs/decisions/, titled by their headings. */
export function decisions(docs: string): Entry[] {
  return readdirSync(join(docs, "decisions"))
    .filter((file) => /^\d+-.*\.md$/.test(file))
    .sort()
    .map((file) => {
      const [heading = ""] = readFileSync(join(docs, "decisions", file), "utf8").split("\n", 1);
      return { text: heading.replace(/^# /, "").replaceAll("`", ""), page: `decisions/${file.replace(/\.md$/, "")}` };
    });
}

/** Drops entries whose page does not exist yet. */
function present(entries: Entry[]): Entry[] {
  return entries.filter(({ page }) => existsSync(join(import.meta.dirname, "..", `${page}.md`)));
}
