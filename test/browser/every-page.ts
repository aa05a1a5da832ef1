import type { Page } from "playwright-core";
import { expect, vi } from "vitest";
import type { ApiClient } from "../../src/wire/client.ts";

/** Creates runs of every kind, so that no page is empty. Returns the paths of all pages by name. */
export async function seed(client: ApiClient): Promise<Record<string, string>> {
  const runToEnd = async (agent_name: string, fields: object): Promise<string> => {
    const { run_id } = await client.submit({ agent_name, ...fields });
    for await (const _ of client.runs.follow(run_id)) void _;
    return run_id;
  };
  await client.agents.put("nightly-crawl", {
    command: "sleep 600",
    description: "Crawls every page of the shop and reports broken links",
  });
  const echo = await runToEnd("echo", { parameters: { message: "Hello World" } });
  await runToEnd("disk-usage", { parameters: {} });
  await runToEnd("http-check", { parameters: { url: "http://127.0.0.1:9/" } });
  const failed = await runToEnd("disk-usage", { parameters: { path: "/there/is/no/such/folder" } });
  const writer = await runToEnd("writer", { prompt: "Write a haiku about a run that leaves its trace" });
  const schedule = await seedTriggers(client);
  await client.submit({ agent_name: "nightly-crawl" });
  const pending = await client.submit({ agent_name: "echo", parameters: { message: "x" }, demands: { tags: ["gpu"] } });
  const waitingRun = await client.submit({
    agent_name: "checklist",
    attended: true,
    parameters: { steps: ["Tag v0.2.0", "Push the tag", "Write the release notes"] },
  });
  for await (const { event } of client.runs.follow(waitingRun.run_id)) if (event.type === "permission_request") break;
  const { session_id } = await client.runs.get(writer);
  return {
    overview: "/",
    inbox: "/inbox",
    runs: "/runs",
    "runs-none": "/runs?agent=nobody",
    "run-waiting": `/runs/${waitingRun.run_id}`,
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
    schedules: "/schedules",
    "schedules-none": "/schedules?agent=nobody",
    "schedule-new": "/schedules/new?agent=http-check",
    schedule: `/schedules/${schedule}`,
    webhooks: "/webhooks",
    "webhooks-none": "/webhooks?webhook=nobody",
    "webhooks-out": "/webhooks?tab=out",
    "webhooks-in": "/webhooks?tab=in",
    runners: "/runners",
    audit: "/audit",
    settings: "/settings",
  };
}

/** Creates schedules that succeed, fail, skip and are disabled, and a webhook with an unreachable receiver. Returns the failing schedule. */
async function seedTriggers(client: ApiClient): Promise<string> {
  const { schedules, hooks, webhooks } = client;
  const crawl = await schedules.create({ agent_name: "nightly-crawl", name: "crawl", every: "10s" });
  const greet = await schedules.create({
    agent_name: "echo",
    name: "greet",
    cron: "0 7 * * *",
    parameters: { message: "Hello" },
  });
  await schedules.create({
    agent_name: "writer",
    name: "haiku",
    cron: "0 9 * * 1-5",
    timezone: "Europe/Berlin",
    prompt: "Write a haiku about Monday",
    resume_session: true,
    enabled: false,
  });
  const failing = await schedules.create({
    agent_name: "disk-usage",
    name: "disk-report",
    cron: "30 2 * * *",
    timezone: "America/New_York",
    parameters: { path: "/there/is/no/such/folder" },
    overlap: "queue",
    catch_up: "one",
  });
  await hooks.add({
    name: "reviews",
    agent_name: "writer",
    scheme: "github",
    events: ["pull_request"],
    prompt: "{{/title}}",
  });
  await hooks.add({ name: "greetings", agent_name: "echo", parameters: { message: { from: "/text" } } });
  await webhooks.add({
    name: "chat",
    url: "http://receiver.invalid/in",
    events: ["failed"],
    payload: { text: "{{/run/error}}" },
  });
  await webhooks.add({ name: "later", url: "https://ci.example/drover", enabled: false });
  for (const { schedule_id } of [greet, failing]) {
    const { run_id } = await schedules.run(schedule_id);
    for await (const _ of client.runs.follow(run_id)) void _;
  }
  await schedules.run(crawl.schedule_id);
  // The next slot falls due while that run is active.
  await waitUntil(async () => (await schedules.history(crawl.schedule_id)).items.some(({ why }) => why === "overlap"));
  await schedules.change(crawl.schedule_id, { every: "1d" });
  await waitUntil(async () => ((await webhooks.deliveries()).items[0]?.attempts ?? 0) > 0);
  return failing.schedule_id;
}

/** Like expect.poll, which works only inside tests. */
const waitUntil = (condition: () => Promise<boolean>) =>
  vi.waitFor(async () => expect(await condition()).toBe(true), { timeout: 240_000, interval: 100 });

/** Waits until the page has its heading, data and fonts. */
export async function waitForContent(page: Page): Promise<void> {
  await page.locator("main :is(h1, h2)").first().waitFor({ state: "attached" });
  await expect.poll(() => page.locator("[aria-busy]").count(), { message: page.url() }).toBe(0);
  await page.evaluate("document.fonts.ready.then(() => undefined)");
}

interface Opened {
  /** The name of the page it opens on. */
  at: string;
  open: (page: Page) => Promise<unknown>;
  /** Only at this width. */
  only?: 390 | 1440;
}

const waitForRole = (page: Page, role: "dialog" | "menu") => page.getByRole(role).waitFor();

/** Dialogs, menus and other states of a page, each opened as a user would. */
export const openedStates: Record<string, Opened> = {
  palette: {
    at: "runs",
    open: async (page) => {
      await page.keyboard.press("Control+k");
      await page.getByPlaceholder("Search or jump to").fill("r");
      await page.getByRole("option").first().waitFor();
    },
  },
  shortcuts: {
    at: "overview",
    open: async (page) => (await page.keyboard.press("?"), await waitForRole(page, "dialog")),
  },
  menu: {
    at: "overview",
    only: 390,
    open: async (page) => {
      await page.getByRole("button", { name: "Menu" }).click();
      await page.getByRole("link", { name: "Sessions" }).waitFor();
    },
  },
  "runs-filter": {
    at: "runs",
    open: async (page) => (
      await page.getByRole("button", { name: /^Status/ }).click(),
      await waitForRole(page, "menu")
    ),
  },
  "runs-selected": {
    at: "runs",
    open: async (page) => {
      await page.keyboard.press("j");
      await page.keyboard.press("x");
      await page.getByText("1 selected").waitFor();
    },
  },
  "run-copy": {
    at: "run-result",
    open: async (page) => (
      await page.getByRole("button", { name: "Copy as" }).click(),
      await waitForRole(page, "menu")
    ),
  },
  "run-edit": {
    at: "run-result",
    open: async (page) => {
      await page.getByRole("button", { name: "Edit and run again" }).click();
      await waitForRole(page, "dialog");
    },
  },
  "run-resume": {
    at: "run-timeline",
    open: async (page) => {
      await page.getByRole("button", { name: "Resume" }).click();
      await waitForRole(page, "dialog");
    },
  },
  "agent-refused": {
    at: "agent",
    open: async (page) => {
      await page.locator("main").getByRole("button", { name: "Run", exact: true }).click();
      await page.getByRole("alert").first().waitFor();
    },
  },
  "agent-autonomous": {
    at: "agent-new",
    open: async (page) => {
      await page.getByLabel("Type").selectOption("autonomous");
      await page.getByText("Advanced").click();
    },
  },
  "inbox-edit": {
    at: "inbox",
    open: async (page) => (await page.keyboard.press("e"), await page.getByLabel("Input").waitFor()),
  },
  "inbox-deny": {
    at: "inbox",
    open: async (page) => (await page.keyboard.press("d"), await page.getByLabel("Reason for the agent").waitFor()),
  },
  "schedule-edit": {
    at: "schedule",
    open: async (page) => {
      await page.getByRole("button", { name: "Edit" }).click();
      await page.getByLabel("Timezone").waitFor();
      await waitForContent(page);
    },
  },
  "schedule-refused": {
    at: "schedule-new",
    open: async (page) => {
      await page.getByLabel("Cron", { exact: true }).fill("0 9 30 2 *");
      await page.getByRole("button", { name: "Create" }).click();
      await page.getByRole("alert").first().waitFor();
      await page.getByText("never occurs").first().waitFor();
    },
  },
  "schedules-failing": {
    at: "schedules",
    open: async (page) => (await page.getByRole("button", { name: /^Show/ }).click(), await waitForRole(page, "menu")),
  },
  delivery: {
    at: "webhooks",
    open: async (page) => {
      await page.getByRole("region", { name: "Deliveries" }).getByRole("link").first().click();
      await waitForRole(page, "dialog");
    },
  },
  "new-webhook": {
    at: "webhooks-out",
    open: async (page) => (
      await page.getByRole("button", { name: "New webhook" }).click(),
      await waitForRole(page, "dialog")
    ),
  },
  "webhook-menu": {
    at: "webhooks-out",
    open: async (page) => {
      await page.getByRole("button", { name: "Actions for chat" }).click();
      await waitForRole(page, "menu");
    },
  },
  "new-secret": {
    at: "webhooks-in",
    open: async (page) => {
      await page.getByRole("button", { name: "Actions for greetings" }).click();
      await page.getByRole("menuitem", { name: "New secret" }).click();
      await page.getByText("This is the only time it is shown").waitFor();
    },
  },
  "new-hook": {
    at: "webhooks-in",
    open: async (page) => {
      await page.getByRole("button", { name: "New hook" }).click();
      await page.getByLabel("Signature").selectOption("github");
      await page.getByText("Parameters and filter").click();
    },
  },
  "new-token": {
    at: "settings",
    open: async (page) => (
      await page.getByRole("button", { name: "New token" }).click(),
      await waitForRole(page, "dialog")
    ),
  },
};
