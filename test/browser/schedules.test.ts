import { expect, test } from "vitest";
import type { Page } from "playwright-core";
import { useDrover } from "./drover-ui.ts";

const ui = useDrover({
  "agents/report.yaml": `name: report
command: echo
schedules:
  - name: nightly
    cron: "0 3 * * *"
    timezone: Asia/Kolkata
`,
});
const expectText = (page: Page, selector = "main") => expect.poll(() => page.locator(selector).innerText());
const card = (page: Page, title: string) => page.locator(`main section:has(h2:text-is("${title}"))`);
const row = (page: Page, name: string) => page.getByRole("row").filter({ hasText: name });
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

async function findSchedule(name: string) {
  const { items } = await ui.client.schedules.list({ name });
  return items[0];
}

test("creates a schedule with a live preview in its timezone and the browser's, and shows errors at their fields", async () => {
  const { page, faults } = await ui.open({ timezoneId: "America/New_York" });
  await page.keyboard.press("g");
  await page.keyboard.press("d");
  await page.getByRole("heading", { name: "Schedules" }).waitFor();
  await button(page, "New schedule").click();
  await page.getByLabel("Agent").selectOption("disk-usage");
  await page.getByLabel("Name").fill("weekly");
  expect(await page.getByLabel("Timezone").inputValue()).toBe("America/New_York");
  await page.getByLabel("Timezone").fill("Berlin");
  await expectText(page).toContain("Did you mean Europe/Berlin?");
  expect(await page.getByLabel("Timezone").getAttribute("aria-invalid")).toBe("true");
  await page.getByLabel("Timezone").fill("Europe/Berlin");
  await page.getByLabel("Cron", { exact: true }).fill("0 9 30 2 *");
  await expectText(page).toContain("never occurs: there is no such day");
  await page.getByLabel("Cron", { exact: true }).fill("30 9 * * 1");
  const preview = card(page, "Next five slots");
  const { next } = await ui.client.schedules.preview({ cron: "30 9 * * 1", timezone: "Europe/Berlin" });
  await expect.poll(() => preview.getByRole("row").count()).toBe(1 + next.length);
  expect(await preview.getByRole("columnheader").allInnerTexts()).toEqual([
    "Slot",
    "Europe/Berlin",
    "America/New_York (you)",
  ]);
  await expect.poll(() => preview.innerText()).toMatch(/Mon, .*09:30 GMT\+[12]\s+Mon, .*0[34]:30 E[SD]T/);
  await page.getByLabel("path").fill("/there/is/no/such/folder");
  await page.getByLabel("If the previous run is still active").selectOption("queue");
  await button(page, "Create").click();
  await page.getByRole("heading", { name: "weekly" }).waitFor();
  expect(await findSchedule("weekly")).toMatchObject({
    agent_name: "disk-usage",
    cron: "30 9 * * 1",
    timezone: "Europe/Berlin",
    parameters: { path: "/there/is/no/such/folder" },
    overlap: "queue",
    catch_up: "none",
    attended: null,
    source: "api",
  });
  // A duplicate name is refused at its field.
  await page.goto(`${ui.url}/ui/schedules/new?agent=disk-usage`);
  await page.getByLabel("Name").fill("weekly");
  await button(page, "Create").click();
  await expectText(page).toContain("The agent disk-usage already has a schedule weekly.");
  expect(await page.getByLabel("Name").getAttribute("aria-invalid")).toBe("true");
  expect(faults).toEqual([]);
});

test("a failed run shows as failed in the list, on the page and in the history without a reload", async () => {
  const created = await ui.client.schedules.create({
    agent_name: "disk-usage",
    name: "failing",
    cron: "0 3 * * *",
    parameters: { path: "/there/is/no/such/folder" },
  });
  const { page, faults } = await ui.open();
  await page.goto(`${ui.url}/ui/schedules`);
  await page.getByRole("button", { name: "Run failing now" }).click();
  await expect.poll(() => row(page, "failing").locator('[data-status="failed"]').count()).toBe(1);
  expect(await row(page, "failing").locator('[data-status="completed"]').count()).toBe(0);
  await page.getByRole("button", { name: /^Show/ }).click();
  await page.getByRole("menuitem", { name: "Failing" }).click();
  await expect.poll(() => page.url()).toContain("only=failing");
  await page.getByRole("link", { name: "failing", exact: true }).click();
  await expect.poll(() => page.url()).toContain(`/schedules/${created.schedule_id}`);
  await expectText(page).toMatch(/The last run failed: exit_nonzero/);
  const [slot] = (await ui.client.schedules.history(created.schedule_id)).items;
  await expect.poll(() => card(page, "History").innerText()).toMatch(/Failed[\s\S]*manual\s+exit_nonzero/);
  await page.getByRole("link", { name: "last run" }).click();
  await expect.poll(() => page.url()).toContain(`/runs/${slot!.run_id}`);
  await page.getByRole("link", { name: "schedule · failing" }).click();
  await expect.poll(() => page.url()).toContain("/schedules?agent=disk-usage");
  expect(faults).toEqual([]);
});

test("a skipped slot appears with its reason while the page is open, and disabling and enabling show at once", async () => {
  await ui.client.agents.put("long", { command: "sleep 600" });
  const created = await ui.client.schedules.create({ agent_name: "long", name: "overlapping", every: "10s" });
  const { page, faults } = await ui.open();
  await page.goto(`${ui.url}/ui/schedules/${created.schedule_id}`);
  await button(page, "Run now").click();
  await expect.poll(() => card(page, "History").innerText()).toContain("manual");
  await expect
    .poll(() => card(page, "History").innerText())
    .toMatch(/Skipped: overlap[\s\S]*none\s+schedule\s+The previous run had not finished/);
  await button(page, "Disable").click();
  await expectText(page).toContain("Disabled: its slots are skipped until it is enabled.");
  expect(await findSchedule("overlapping")).toMatchObject({ enabled: false });
  await expect.poll(() => card(page, "History").innerText()).toContain("Skipped: disabled");
  await button(page, "Enable").click();
  await expect.poll(() => card(page, "Next five slots").getByRole("row").count()).toBe(6);
  expect(await findSchedule("overlapping")).toMatchObject({ enabled: true });
  await button(page, "Delete").click();
  await expect.poll(() => page.url()).toMatch(/\/schedules$/);
  expect(await findSchedule("overlapping")).toBeUndefined();
  for (const { run_id } of (await ui.client.runs.list({ agent_name: "long" })).items) await ui.client.runs.stop(run_id);
  expect(faults).toEqual([]);
});

test("an edit changes only the edited fields, and an unchanged interval keeps counting from its start", async () => {
  const created = await ui.client.schedules.create({ agent_name: "writer", name: "draft", every: "2h", prompt: "one" });
  const { page, faults } = await ui.open();
  await page.goto(`${ui.url}/ui/schedules/${created.schedule_id}`);
  await button(page, "Edit").click();
  await expect.poll(() => card(page, "Next five slots").getByRole("row").count()).toBe(6);
  await page.getByLabel("Prompt").fill("two");
  await page.getByLabel("After missed slots").selectOption("one");
  await page.getByLabel("Questions from its runs").selectOption("false");
  await page.getByLabel("Each run continues").check();
  await button(page, "Save").click();
  await expect.poll(() => card(page, "Each run").innerText()).toContain("continue the previous one");
  expect(await findSchedule("draft")).toMatchObject({
    prompt: "two",
    catch_up: "one",
    attended: false,
    resume_session: true,
    every: "2h",
    next: created.next,
  });
  await button(page, "Edit").click();
  await page.getByLabel("at times (cron)").check();
  await page.getByRole("button", { name: "Weekdays at 9:00" }).click();
  await page.getByLabel("Prompt").fill("");
  await button(page, "Save").click();
  await expect
    .poll(async () => await findSchedule("draft"))
    .toMatchObject({ cron: "0 9 * * 1-5", every: null, prompt: null });
  expect(faults).toEqual([]);
});

test("a schedule from an agent file shows everywhere, says where to edit it, and can be disabled but not changed", async () => {
  const { page, faults } = await ui.open();
  await page.goto(`${ui.url}/ui/agents/report`);
  await page.getByRole("link", { name: "nightly" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByPlaceholder("Search or jump to").fill("schedule nightly");
  await page
    .getByRole("option", { name: /nightly/ })
    .first()
    .click();
  await expectText(page).toContain("The file of agent report defines this schedule");
  for (const name of ["Edit", "Delete"]) expect(await button(page, name).getAttribute("aria-disabled")).toBe("true");
  await button(page, "Disable").click();
  await expect.poll(async () => (await findSchedule("nightly"))?.enabled).toBe(false);
  expect(faults).toEqual([]);
});

test("a viewer sees schedules but cannot change them", async () => {
  const created = await ui.client.schedules.create({ agent_name: "disk-usage", name: "watched", cron: "0 3 * * *" });
  const { token } = await ui.client.tokens.create({ role: "viewer", subject: "admin" });
  const { page, faults } = await ui.open({ token });
  await page.goto(`${ui.url}/ui/schedules/${created.schedule_id}`);
  for (const name of ["Run now", "Disable", "Edit", "Delete"])
    await expect.poll(() => button(page, name).getAttribute("aria-disabled")).toBe("true");
  expect(faults).toEqual([]);
});
