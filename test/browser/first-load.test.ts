import { expect, test } from "vitest";
import { scripts } from "../../bench/web/in-page.ts";
import { useDrover } from "./drover-ui.ts";

const ui = useDrover();

test("the first load of the runs list is at most 160 kB of script as sent, and no other page's", async () => {
  const { context } = await ui.open();
  const fresh = await ui.browser.newContext({ storageState: await context.storageState() });
  const page = await fresh.newPage();
  await page.goto(`${ui.url}/ui/runs`);
  await page.locator("main h1").waitFor();
  const { script } = await page.evaluate<{ script: number }>(scripts);
  await fresh.close();
  expect(script).toBeGreaterThan(50 * 1024);
  expect(script).toBeLessThan(160 * 1024);
});
