import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { useDrover } from "./drover-ui.ts";

const ui = useDrover();
const maxBytes = 160_000;

test("the first load of the runs list is at most 160 kB of compressed script, without menus, dialogs and the palette", async () => {
  await ui.client.submit({ agent_name: "echo", parameters: { message: "x" } });
  const { page } = await ui.open();
  await page.goto(`${ui.url}/ui/runs`);
  await page.getByRole("row").getByRole("link", { name: "echo" }).first().waitFor();
  const loaded = (await page.evaluate(
    'performance.getEntriesByType("resource").map(({ name }) => name).filter((name) => name.endsWith(".js"))',
  )) as string[];
  const sizes = await Promise.all(
    loaded.map(async (script) => gzipSync(await (await fetch(script)).arrayBuffer()).length),
  );
  const total = sizes.reduce((sum, size) => sum + size, 0);
  expect(total).toBeGreaterThan(50_000);
  expect(total).toBeLessThanOrEqual(maxBytes);
  expect(loaded.join(" ")).not.toMatch(/palette|open-menu|run-dialog|markdown|shortcut-help/);
  // Each loads on first use.
  await page.getByRole("button", { name: /^Status/ }).click();
  await page.getByRole("menuitemcheckbox", { name: "Completed" }).click();
  await expect.poll(() => page.url()).toContain("completed");
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
});
