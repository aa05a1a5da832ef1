import { AxeBuilder } from "@axe-core/playwright";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { useDrover } from "./drover-ui.ts";
import { opened, seed, settled } from "./every-page.ts";

const ui = useDrover();
/** Set by `npm run screenshots`, which saves a picture of each page. */
const kept = process.env["DROVER_SCREENSHOTS"];
if (kept) mkdirSync(kept, { recursive: true });

let pages: Record<string, string>;
beforeAll(async () => {
  pages = await seed(ui.client);
}, 600_000);

const looks = [
  { colorScheme: "light", width: 1440 },
  { colorScheme: "dark", width: 1440 },
  { colorScheme: "light", width: 390 },
  { colorScheme: "dark", width: 390 },
] as const;

// First, while the seeded runs are still active.
test.runIf(kept)("the pictures of the README", async () => {
  for (const [name, at, colorScheme] of [
    ["overview", "overview", "light"],
    ["run", "run-waiting", "dark"],
  ] as const) {
    const { page } = await ui.open({ colorScheme, viewport: { width: 1280, height: 900 } });
    await page.goto(`${ui.url}/ui${pages[at]}`);
    await settled(page);
    await page.getByText("Live", { exact: true }).waitFor();
    await page.getByRole("button", { name: /^Approve/ }).waitFor();
    await page.screenshot({ path: join(kept!, `readme-${name}.png`) });
  }
});

for (const { colorScheme, width } of looks) {
  // Elements that fade in have a lower contrast until the animation ends.
  const look = { colorScheme, reducedMotion: "reduce" } as const;
  const suffix = `${colorScheme}-${width}`;
  const viewport = { width, height: width === 390 ? 844 : 900 };

  test(`every page is clean for axe and no wider than the screen: ${colorScheme}, ${width} px`, async () => {
    const { page } = await ui.open({ ...look, viewport });
    const found: Record<string, unknown> = {};
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(`${ui.url}/ui${path}`);
      await settled(page);
      Object.assign(found, await inspect(page, `${name}-${suffix}`));
    }
    expect(found).toEqual({});
  }, 1_800_000);

  test(`dialogs and menus are clean for axe and no wider than the screen: ${colorScheme}, ${width} px`, async () => {
    const { page } = await ui.open({ ...look, viewport });
    const found: Record<string, unknown> = {};
    for (const [name, { at, open, only }] of Object.entries(opened)) {
      if (only !== undefined && only !== width) continue;
      await page.goto(`${ui.url}/ui${pages[at]}`);
      await settled(page);
      await open(page);
      Object.assign(found, await inspect(page, `${name}-${suffix}`));
    }
    expect(found).toEqual({});
    await page.context().clearCookies();
    await page.goto(`${ui.url}/ui/`);
    await page.getByText("You are signed out").waitFor();
    expect(await inspect(page, `signed-out-${suffix}`)).toEqual({});
  }, 1_800_000);
}

async function inspect(page: Page, name: string): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  const axe = new AxeBuilder({ page });
  // the dark pages are the light ones in other colours
  if (name.includes("-dark-")) axe.withRules(["color-contrast", "link-in-text-block"]);
  const { violations } = await axe.analyze();
  for (const { id, nodes } of violations)
    found[`${name}: ${id}`] = nodes.slice(0, 3).map(({ html }) => html.slice(0, 200));
  const overflow = Number(await page.evaluate("document.documentElement.scrollWidth - innerWidth"));
  if (overflow > 0) found[`${name}: too wide`] = overflow;
  if (kept) await page.screenshot({ path: join(kept, `${name}.png`) });
  return found;
}
