import type { OpenApiDocument } from "../../src/serve/openapi-document.ts";

const intro = `# Every route

<!-- Generated from the API itself. Update it with: npm test -- test/docs/generated.test.ts -u -->

[HTTP API](http.md) explains the API with examples. This page lists every route and who may use it. A running coordinator
shows the same with all fields at \`/docs\`, and as OpenAPI 3.1 at \`/openapi.json\`.

The last column names the [roles](tokens.md) that may use a route. An admin sees and changes everything. All other callers see
and change only what belongs to them. A run uses the token of its attempt, which is in \`DROVER_API_KEY\`.
`;

/** The reference page of all routes, grouped by the first part of their path. */
export function renderRoutes({ paths }: OpenApiDocument): string {
  const groups = new Map<string, string[]>();
  for (const [path, operations] of Object.entries(paths))
    for (const [method, { summary, description }] of Object.entries(operations)) {
      const group = getGroup(path);
      const row = `| \`${method.toUpperCase()} ${path}\` | ${escape(`${summary}.`)} | ${escape(access(description))} |`;
      groups.set(group, [...(groups.get(group) ?? []), row]);
    }
  const sections = [...groups].map(
    ([title, rows]) => `## ${title}\n\n| route | what it does | who may use it |\n|---|---|---|\n${rows.join("\n")}\n`,
  );
  return [intro, ...sections].join("\n");
}

const titles: Record<string, string> = {
  executions: "Audit",
  usage: "Statistics",
  stats: "Statistics",
  audit: "Audit",
  runner: "For runners",
  mcp: "MCP",
  deliveries: "Webhooks",
  hooks: "Webhooks",
  me: "Signing in",
  "sign-in": "Signing in",
  "": "System",
  health: "System",
  proof: "System",
  metrics: "System",
  backup: "System",
  "openapi.json": "System",
  docs: "System",
};

function getGroup(path: string): string {
  const first = path.split("/")[1] ?? "";
  return titles[first] ?? `${first.charAt(0).toUpperCase()}${first.slice(1)}`;
}

/** Shortens the sentence of the OpenAPI document to a list of roles. The introduction says what is common to all. */
const access = (description: string): string =>
  description
    .replace(/^Needs the role /, "")
    .replace(/; only an admin may use another owner's \w+/, "")
    .replace("; also allowed with the token of a run's current attempt, for its own run", ", the run itself")
    .replace("; also allowed with the token of a run's current attempt", ", any run")
    .replaceAll(" or ", ", ")
    .replace(/\.$/, "");

const escape = (text: string): string => text.replaceAll("|", String.raw`\|`).replaceAll("*", String.raw`\*`);
