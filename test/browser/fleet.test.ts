import { expect, test } from "vitest";
import type { Page } from "playwright-core";
import type { ApiClient } from "../../src/wire/client.ts";
import { useDrover } from "./drover-ui.ts";

const ui = useDrover();
const expectText = (page: Page, selector = "main") => expect.poll(() => page.locator(selector).innerText());
/** Finds the card with this heading and returns its text. */
const readCard = (page: Page, title: string) => expectText(page, `main section:has(h2:text-is("${title}"))`);

async function runToEnd(client: ApiClient, agent_name: string, fields: object): Promise<string> {
  const { run_id } = await client.submit({ agent_name, ...fields });
  for await (const _ of client.runs.follow(run_id)) void _;
  return run_id;
}

test("the overview shows throughput, waiting runs and why they wait, failures by reason, cost by agent and each runner's heartbeat", async () => {
  await runToEnd(ui.client, "echo", { parameters: { message: "x" } });
  await runToEnd(ui.client, "disk-usage", { parameters: { path: "/there/is/no/such/folder" } });
  await runToEnd(ui.client, "writer", { prompt: "write" });
  const pending = await ui.client.submit({
    agent_name: "echo",
    parameters: { message: "x" },
    demands: { tags: ["gpu"] },
  });
  const { page, faults } = await ui.open();
  await page.goto(`${ui.url}/ui/`);
  await expectText(page).toContain("3 runs · 66.7 % completed");
  await expect
    .poll(() => page.getByRole("img", { name: /^Finished runs/ }).getAttribute("aria-label"))
    .toBe("Finished runs: 2 completed, 1 failed, 0 cancelled");
  await readCard(page, "Waiting for").toMatch(/a runner with the tags\s+1/);
  // There is no bar without something to compare it with.
  const waiting = page.getByRole("listitem").filter({ hasText: "a runner with the tags" });
  expect(await waiting.locator("[aria-hidden]").count()).toBe(0);
  await readCard(page, "Failures by reason").toMatch(/exit_nonzero\s+1/);
  await readCard(page, "Cost by agent").toMatch(/tokens[\s\S]*writer/);
  await readCard(page, "Runners").toMatch(/Online\s+checklist[\s\S]*0\/\d[\s\S]*now/);
  await page.getByRole("link", { name: "7 days" }).click();
  await expectText(page).toContain("Last 7 days");
  expect(page.url()).toContain("last=168");
  await page.getByRole("link", { name: "exit_nonzero" }).click();
  await expect.poll(() => page.locator('main [data-status="failed"]').count()).toBe(1);
  await ui.client.runs.stop(pending.run_id);
  expect(faults).toEqual([]);
});

test("the audit page shows the chain and verifies it", async () => {
  await runToEnd(ui.client, "echo", { parameters: { message: "for the record" } });
  const { page, faults } = await ui.open();
  await page.goto(`${ui.url}/ui/audit`);
  const { head } = await ui.client.audit.state();
  await expectText(page).toContain("Records");
  await expectText(page).toContain("matches");
  await expectText(page).toContain("echo --message 'for the record'");
  expect(head).toMatch(/^\d+:/);
  await page.getByRole("button", { name: "Verify" }).click();
  await expectText(page).toContain("The chain is intact");
  await expectText(page).toMatch(/All \d+ records are unchanged/);
  expect(faults).toEqual([]);
});

test("a search in the runs list is kept in the URL, and each row says where it matches", async () => {
  await runToEnd(ui.client, "echo", { parameters: { message: "the zeppelin lands at noon" } });
  await runToEnd(ui.client, "echo", { parameters: { message: "nothing to see" } });
  const { page, faults } = await ui.open();
  await page.goto(`${ui.url}/ui/runs`);
  await page.getByLabel("Search runs").fill("zeppelin noon");
  await expect.poll(() => new URL(page.url()).searchParams.get("search")).toBe("zeppelin noon");
  const rows = page.getByRole("row").filter({ has: page.getByRole("cell") });
  await expect.poll(() => rows.count()).toBe(1);
  expect(await rows.locator("mark").allInnerTexts()).toEqual(["zeppelin", "noon"]);
  await page.reload();
  expect(await page.getByLabel("Search runs").inputValue()).toBe("zeppelin noon");
  await expect.poll(() => rows.count()).toBe(1);
  await page.getByLabel("Search runs").fill("quetzalcoatl");
  await expectText(page).toContain("No run matches");
  expect(faults).toEqual([]);
});

test("a match in a tool's input opens that step, and the palette searches runs too", async () => {
  const run_id = await runToEnd(ui.client, "writer", { prompt: "please" });
  const { page, faults } = await ui.open();
  await page.goto(`${ui.url}/ui/runs?search=trace`);
  await page.getByRole("row").getByRole("link", { name: "writer" }).first().click();
  await expect.poll(() => page.url()).toMatch(/step=e\d+/);
  await expectText(page).toContain("A run leaves its trace.");
  await page.keyboard.press("Control+k");
  await page.getByPlaceholder("Search or jump to").fill("please");
  await page
    .getByRole("option", { name: /writer/ })
    .first()
    .click();
  await expect.poll(() => page.url()).toContain(`/runs/${run_id}`);
  await page.keyboard.press("Control+k");
  await page.getByPlaceholder("Search or jump to").fill("trace");
  await page.getByRole("option", { name: "Search all runs for trace" }).click();
  await expect.poll(() => new URL(page.url()).searchParams.get("search")).toBe("trace");
  expect(faults).toEqual([]);
});
