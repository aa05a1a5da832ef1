import axe, { type AxeResults, type RunOptions } from "axe-core";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { useDrover } from "./drover-ui.ts";
import { openedStates, seed, waitForContent } from "./every-page.ts";

const ui = useDrover();
/** Set by `npm run screenshots`, which saves a screenshot of each page. */
const screenshotDirectory = process.env["DROVER_SCREENSHOTS"];
if (screenshotDirectory) mkdirSync(screenshotDirectory, { recursive: true });

let pages: Record<string, string>;
beforeAll(async () => {
  pages = await seed(ui.client);
}, 600_000);

// First, while the seeded runs are still active.
test.runIf(screenshotDirectory)("takes the screenshots of the README", async () => {
  for (const [name, at, colorScheme] of [
    ["overview", "overview", "light"],
    ["run", "run-waiting", "dark"],
  ] as const) {
    const { page } = await ui.open({ colorScheme, viewport: { width: 1280, height: 900 } });
    await page.goto(`${ui.url}/ui${pages[at]}`);
    await waitForContent(page);
    await page.getByText("Live", { exact: true }).waitFor();
    await page.getByRole("button", { name: /^Approve/ }).waitFor();
    await page.screenshot({ path: join(screenshotDirectory!, `readme-${name}.png`) });
  }
});

test.each(["light", "dark"] as const)("a page follows the system's %s theme", async (colorScheme) => {
  const { page } = await ui.open({ colorScheme });
  await page.locator(`html[data-theme="${colorScheme}"]`).waitFor();
});

for (const width of [1440, 390]) {
  const viewport = { width, height: width === 390 ? 844 : 900 };
  // Elements that fade in have a lower contrast until the animation ends.
  const open = () => ui.open({ viewport, reducedMotion: "reduce" });

  test(`every page is clean for axe and no wider than the screen, light and dark: ${width} px`, async () => {
    const { page } = await open();
    const findings: Record<string, unknown> = {};
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(`${ui.url}/ui${path}`);
      await waitForContent(page);
      Object.assign(findings, await inspect(page, name, width));
    }
    expect(findings).toEqual({});
  }, 1_800_000);

  test(`dialogs and menus are clean for axe and no wider than the screen, light and dark: ${width} px`, async () => {
    const { page } = await open();
    const findings: Record<string, unknown> = {};
    for (const [name, { at, open: openIt, only }] of Object.entries(openedStates)) {
      if (only !== undefined && only !== width) continue;
      await page.goto(`${ui.url}/ui${pages[at]}`);
      await waitForContent(page);
      await openIt(page);
      Object.assign(findings, await inspect(page, name, width));
    }
    expect(findings).toEqual({});
    await page.context().clearCookies();
    await page.goto(`${ui.url}/ui/`);
    await page.getByText("You are signed out").waitFor();
    expect(await inspect(page, "signed-out", width)).toEqual({});
  }, 1_800_000);
}

/** Checks the page in both themes. Returns what it found, by page, theme, width and rule. */
async function inspect(page: Page, name: string, width: number): Promise<Record<string, unknown>> {
  const findings: Record<string, unknown> = {};
  await page.evaluate(axe.source);
  for (const theme of ["light", "dark"] as const) {
    const appearance = `${name}-${theme}-${width}`;
    await page.evaluate(`document.documentElement.dataset.theme = "${theme}"`);
    const options: RunOptions = { resultTypes: ["violations"] };
    // The themes differ in nothing but colours.
    if (theme === "dark") options.runOnly = ["color-contrast", "link-in-text-block"];
    const { violations } = await page.evaluate<AxeResults>(`axe.run(document, ${JSON.stringify(options)})`);
    for (const { id, nodes } of violations)
      findings[`${appearance}: ${id}`] = nodes.slice(0, 3).map(({ html }) => html.slice(0, 200));
    const overflow = Number(await page.evaluate("document.documentElement.scrollWidth - innerWidth"));
    if (overflow > 0) findings[`${appearance}: too wide`] = overflow;
    if (screenshotDirectory) await page.screenshot({ path: join(screenshotDirectory, `${appearance}.png`) });
  }
  return findings;
}
