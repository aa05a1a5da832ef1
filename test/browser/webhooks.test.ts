import { createHmac } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { useDrover } from "./drover-ui.ts";
import { allowReceivers, openReceiver, type Receiver } from "./receiver.ts";

const ui = useDrover({ "drover.yaml": allowReceivers });
const expectText = (page: Page, selector = "main") => expect.poll(() => page.locator(selector).innerText());
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const findRow = (page: Page, name: string) => page.getByRole("row").filter({ hasText: name });
/** Chooses an entry from the menu at the end of a row. */
async function choose(page: Page, name: string, what: string): Promise<void> {
  await page.getByRole("button", { name: `Actions for ${name}` }).click();
  await page.getByRole("menuitem", { name: what }).click();
}

let receiver: Receiver;
beforeAll(async () => {
  receiver = await openReceiver();
});
afterAll(() => receiver.close());

test("creates a webhook and shows its secret once, shows the response of a failed delivery, and redelivers it", async () => {
  const { page, faults } = await ui.open();
  await page.keyboard.press("g");
  await page.keyboard.press("w");
  await expectText(page).toContain("drover webhooks add ci https://ci.example/drover");
  await page.getByRole("link", { name: "Webhooks out" }).click();
  await button(page, "New webhook").click();
  await page.getByLabel("Name").fill("ops");
  await page.getByLabel("Address").fill("http://10.0.0.7/in");
  await page.getByLabel("failed").uncheck();
  await button(page, "Create").click();
  await expectText(page, "[role=dialog]").toContain("is not a public address");
  expect(await page.getByLabel("Address").getAttribute("aria-invalid")).toBe("true");
  await page.getByLabel("Address").fill(receiver.url);
  await button(page, "Create").click();
  await expectText(page).toContain("This is the only time it is shown.");
  const secret = await page.locator("main section pre", { hasText: "whsec_" }).innerText();
  expect(secret.length).toBeGreaterThanOrEqual(16);
  expect((await ui.client.webhooks.list()).items).toMatchObject([{ name: "ops", events: ["completed"] }]);
  await page.reload();
  await findRow(page, "ops").waitFor();
  expect(await page.locator("main").innerText()).not.toContain(secret);

  receiver.response = { status: 503, text: "not today" };
  await findRow(page, "ops").getByRole("link", { name: "ops" }).click();
  await expectText(page).toContain("No delivery matches these filters");
  await ui.client.submit({ agent_name: "echo", parameters: { message: "hello" } });
  const row = findRow(page, "completed → ops");
  await expect.poll(() => row.innerText()).toMatch(/Retrying[\s\S]*503 not today/);
  await row.getByRole("link", { name: "completed → ops" }).click();
  const dialog = page.getByRole("dialog");
  await expect
    .poll(() => dialog.innerText())
    .toMatch(/Address\s+http:\/\/127[\s\S]*Response status\s+503[\s\S]*not today/);
  receiver.response = { status: 200, text: "thanks" };
  await dialog.getByRole("button", { name: "Redeliver" }).click();
  await expect.poll(() => dialog.locator('[data-status="delivered"]').count()).toBe(1);
  await expect.poll(() => dialog.innerText()).toContain("thanks");
  await dialog.getByRole("button", { name: "Close" }).last().click();

  // A delivered message is sent again only on request, with the same id.
  const countBefore = receiver.received.length;
  await page.getByRole("button", { name: "Redeliver the event completed to ops" }).click();
  await expect.poll(() => receiver.received.length).toBe(countBefore + 1);
  expect(new Set(receiver.received).size).toBe(1);
  await expect.poll(() => row.locator('[data-status="delivered"]').count()).toBe(1);

  await page.getByRole("link", { name: "Webhooks out" }).click();
  await choose(page, "ops", "Disable");
  await expect.poll(() => findRow(page, "ops").locator('[data-status="disabled"]').count()).toBe(1);
  await choose(page, "ops", "New secret");
  await expectText(page).toContain("Deliveries to ops are signed with this secret.");
  await choose(page, "ops", "Edit");
  await page.getByLabel("failed").check();
  await button(page, "Save").click();
  await expect.poll(() => findRow(page, "ops").innerText()).toContain("completed, failed");
  await choose(page, "ops", "Remove");
  await expectText(page).toContain("No webhooks yet");
  expect(faults).toEqual([]);
});

test("creates a hook and shows its secret, and a request signed with that secret starts a run", async () => {
  const { page, faults } = await ui.open();
  await page.goto(`${ui.url}/ui/webhooks?tab=in`);
  await expectText(page).toContain("drover hooks add greetings echo --param message=/text");
  await button(page, "New hook").click();
  await page.getByLabel("Name").fill("two words");
  await page.getByLabel("Agent").selectOption("echo");
  await page.getByText("Parameters and filter").click();
  await page.getByLabel("Parameters").fill('{"message": {"from": "/text"}}');
  await button(page, "Create").click();
  await expectText(page, "[role=dialog]").toContain("a name consists of letters, digits");
  expect(await page.getByLabel("Name").getAttribute("aria-invalid")).toBe("true");
  await page.getByLabel("Name").fill("greetings");
  await button(page, "Create").click();
  await expectText(page).toContain(`Requests to ${ui.url}/hooks/greetings must be signed with this secret.`);
  const secret = await page.locator("main section pre", { hasText: "whsec_" }).innerText();
  const body = '{"text":"from outside"}';
  const seconds = Math.floor(Date.now() / 1000);
  const signature = createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex");
  const response = await fetch(`${ui.url}/hooks/greetings`, {
    method: "POST",
    headers: { "drover-signature": `t=${seconds},v1=${signature}` },
    body,
  });
  expect(response.status).toBe(202);
  const { items } = await ui.client.runs.list({ agent_name: "echo" });
  expect(items[0]).toMatchObject({ trigger_type: "webhook" });
  await choose(page, "greetings", "Disable");
  await expect.poll(async () => (await ui.client.hooks.get("greetings")).enabled).toBe(false);
  await choose(page, "greetings", "Edit");
  await page.getByLabel("Signature").selectOption("github");
  await page.getByLabel("GitHub events").fill("push, release");
  await button(page, "Save").click();
  await expect.poll(() => findRow(page, "greetings").innerText()).toMatch(/GitHub\s+push, release/);
  await choose(page, "greetings", "Remove");
  await expectText(page).toContain("No hooks yet");
  expect(faults).toEqual([]);
});
