import type { Client } from "../../src/wire/client.ts";

/** Runs of every kind, so that no page is empty. Gives the pages to look at, by name. */
export async function seed(client: Client): Promise<Record<string, string>> {
  const done = async (agent_name: string, more: object): Promise<string> => {
    const { run_id } = await client.submit({ agent_name, ...more });
    for await (const _ of client.runs.follow(run_id)) void _;
    return run_id;
  };
  await client.agents.put("nightly-crawl", {
    command: "sleep 600",
    description: "Crawls every page of the shop and reports broken links",
  });
  const echo = await done("echo", { parameters: { message: "Hello World" } });
  await done("disk-usage", { parameters: {} });
  await done("http-check", { parameters: { url: "http://127.0.0.1:9/" } });
  const failed = await done("disk-usage", { parameters: { path: "/there/is/no/such/folder" } });
  const writer = await done("writer", { prompt: "Write a haiku about a run that leaves its trace" });
  await client.submit({ agent_name: "nightly-crawl" });
  const pending = await client.submit({ agent_name: "echo", parameters: { message: "x" }, demands: { tags: ["gpu"] } });
  const asks = await client.submit({
    agent_name: "checklist",
    attended: true,
    parameters: { steps: ["Tag v0.2.0", "Push the tag", "Write the release notes"] },
  });
  for await (const { event } of client.runs.follow(asks.run_id)) if (event.type === "permission_request") break;
  const { session_id } = await client.runs.get(writer);
  return {
    overview: "/",
    inbox: "/inbox",
    runs: "/runs",
    "runs-none": "/runs?agent=nobody",
    "run-waiting": `/runs/${asks.run_id}`,
    "run-pending": `/runs/${pending.run_id}`,
    "run-failed": `/runs/${failed}`,
    "run-timeline": `/runs/${writer}`,
    "run-conversation": `/runs/${writer}?tab=conversation`,
    "run-log": `/runs/${failed}?tab=log`,
    "run-result": `/runs/${echo}?tab=result`,
    "run-files": `/runs/${writer}?tab=files`,
    "run-audit": `/runs/${echo}?tab=audit`,
    "run-raw": `/runs/${echo}?tab=raw`,
    agents: "/agents",
    agent: "/agents/echo",
    "agent-new": "/agents/new",
    chat: `/chat?session=${session_id}`,
    "chat-echo": "/chat?agent=echo",
    sessions: "/sessions",
    runners: "/runners",
    audit: "/audit",
    settings: "/settings",
  };
}
