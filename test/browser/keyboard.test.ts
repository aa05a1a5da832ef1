import { expect, test } from "vitest";
import type { Locator, Page } from "playwright-core";
import { useDrover } from "./drover-ui.ts";

const ui = useDrover();

const expectText = (page: Page, selector = "main") => expect.poll(() => page.locator(selector).innerText());
const isFocused = async (at: Locator): Promise<boolean> => (await at.and(at.page().locator(":focus")).count()) === 1;

/** Returns null if the focus is visible: as an outline around the element, its row or its field, or as an accented edge. */
const findHiddenFocus = `(() => {
  const at = document.activeElement;
  // Between the last element and the first one.
  if (at === document.body) return null;
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = "var(--accent)";
  const accent = getComputedStyle(probe).color;
  probe.remove();
  const shows = ({ outlineStyle, outlineWidth, borderTopStyle, borderTopColor }) =>
    (outlineStyle !== "none" && parseFloat(outlineWidth) > 0) ||
    (borderTopStyle !== "none" && borderTopColor === accent);
  const styles = [at, at.parentElement, at.closest("label")].filter(Boolean).map((one) => getComputedStyle(one));
  const seen = [...styles, getComputedStyle(at, "::after")].some(shows);
  const { top, left, bottom, right } = at.getBoundingClientRect();
  const inside = bottom > 0 && right > 0 && top < innerHeight && left < innerWidth;
  return seen && inside ? null : at.outerHTML.slice(0, 200);
})()`;

/** Presses Tab until the target has the focus, which must be visible at every stop. */
async function tabTo(page: Page, target: Locator, key: "Tab" | "Shift+Tab" = "Tab"): Promise<void> {
  await target.waitFor({ state: "attached" });
  for (let stops = 0; stops < 150; stops += 1) {
    if (await isFocused(target)) return;
    await page.keyboard.press(key);
    expect(await page.evaluate(findHiddenFocus)).toBeNull();
  }
  throw new Error(`${key} never reaches ${String(target)}`);
}

/** Two keys form a shortcut only within a second. Retries, because a busy machine may take longer between them. */
async function pressKeys(page: Page, keys: string, heading: string | RegExp): Promise<void> {
  const target = page.locator("main h1").filter({ hasText: heading });
  await expect
    .poll(
      async () => {
        if ((await target.count()) === 0) for (const key of keys) await page.keyboard.press(key);
        return target.count();
      },
      { interval: 3000 },
    )
    .toBe(1);
}

/** Presses the arrow keys until the target has the focus, once the menu listens to them. */
async function arrowTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  await expect
    .poll(async () => {
      if (!(await isFocused(target))) await page.keyboard.press("ArrowDown");
      return isFocused(target);
    })
    .toBe(true);
}

test("the first Tab stop skips the navigation, every page is two keys away, and the list of keys opens and closes", async () => {
  const { page } = await ui.open();
  await page.keyboard.press("Tab");
  expect(await isFocused(page.getByText("Skip to content"))).toBe(true);
  expect(await page.evaluate(findHiddenFocus)).toBeNull();
  await page.keyboard.press("Enter");
  expect(await isFocused(page.locator("main"))).toBe(true);
  for (const [key, heading] of Object.entries({
    i: "Inbox",
    r: "Runs",
    a: "Agents",
    c: "Chat",
    s: "Sessions",
    d: "Schedules",
    w: "Webhooks",
    n: "Runners",
    u: "Audit",
    t: "Settings",
    o: /./,
  }))
    await pressKeys(page, `g${key}`, heading);
  await page.keyboard.press("?");
  await expectText(page, "[role=dialog]").toContain("go to Settings");
  await page.keyboard.press("Escape");
  await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
});

test("starts echo, reads its result, edits it and runs it again, and copies it as curl, without a mouse", async () => {
  const { page } = await ui.open({ permissions: ["clipboard-read", "clipboard-write"] });
  await pressKeys(page, "ga", "Agents");
  await tabTo(page, page.getByRole("button", { name: "Run echo" }));
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await tabTo(page, dialog.getByLabel("message"));
  await page.keyboard.type("typed");
  await page.keyboard.press("Enter");
  const main = page.locator("main");
  await main.locator('h1 + [data-status="completed"]').waitFor();
  await tabTo(page, main.getByRole("link", { name: "Result" }));
  await page.keyboard.press("Enter");
  await expectText(page).toContain('message: "typed"');
  await expectText(page, "[data-testid=exit-code]").toBe("0");
  await tabTo(page, main.getByRole("button", { name: "Copy as" }), "Shift+Tab");
  await page.keyboard.press("Enter");
  await arrowTo(page, page.getByRole("menuitem", { name: "curl" }));
  await page.keyboard.press("Enter");
  await expect.poll(() => page.evaluate("navigator.clipboard.readText()")).toContain("curl");
  const first = page.url();
  await tabTo(page, main.getByRole("button", { name: "Edit and run again" }));
  await page.keyboard.press("Enter");
  await tabTo(page, dialog.getByLabel("message"));
  await page.keyboard.press("Control+a");
  await page.keyboard.type("typed again");
  await tabTo(page, dialog.getByRole("button", { name: "Run", exact: true }));
  await page.keyboard.press("Enter");
  await expect.poll(() => page.url()).not.toBe(first);
  await tabTo(page, main.getByRole("link", { name: "Result" }));
  await page.keyboard.press("Enter");
  await expectText(page).toContain('message: "typed again"');
});

test("finds an agent in the palette, starts it, reaches it in the list with j and k, and stops it", async () => {
  await ui.client.agents.put("patient", { command: "sleep 600" });
  const { page } = await ui.open();
  await page.keyboard.press("Control+k");
  await page.getByPlaceholder("Search or jump to").waitFor();
  // The palette selects the first match among the loaded entries.
  await page.getByRole("option", { name: "Run patient" }).waitFor();
  await page.keyboard.type("run patient");
  await page.getByRole("option", { name: "Run patient", selected: true }).waitFor();
  await page.keyboard.press("Enter");
  await page.locator("main h1").filter({ hasText: "patient" }).waitFor();
  await tabTo(page, page.locator("main").getByRole("button", { name: "Run", exact: true }));
  await page.keyboard.press("Enter");
  await page.locator('main h1 + [data-status="running"]').waitFor();
  await pressKeys(page, "gr", "Runs");
  await page.getByRole("row", { name: /patient/ }).waitFor();
  await page.keyboard.press("j");
  await page.locator("main [role=row][data-current]").filter({ hasText: "patient" }).waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  await page.keyboard.press("x");
  await expectText(page).toContain("1 selected");
  await page.keyboard.press("x");
  await page.keyboard.press("Enter");
  await page.locator("main h1").filter({ hasText: "patient" }).waitFor();
  await tabTo(page, page.getByRole("button", { name: "Stop" }));
  await page.keyboard.press("Enter");
  await page.locator('main h1 + [data-status="cancelled"]').waitFor();
});

test("approves, edits and denies without a mouse, and focuses the field to type in", async () => {
  const { page } = await ui.open();
  const steps = ["First step", "Second step", "Third step"];
  await ui.client.submit({ agent_name: "checklist", attended: true, parameters: { steps } });
  await pressKeys(page, "gi", "1 question is waiting for you");
  await expectText(page).toContain("First step");
  await page.keyboard.press("a");
  await expectText(page).toContain("Second step");
  await page.keyboard.press("e");
  await expect.poll(() => isFocused(page.getByLabel("Input"))).toBe(true);
  await page.keyboard.press("Control+a");
  await page.keyboard.type('{"step": "Typed step"}');
  await tabTo(page, page.getByRole("button", { name: "Approve the changed input" }));
  await page.keyboard.press("Enter");
  await expectText(page).toContain("Third step");
  // The focused button is gone, and no stray key may answer another question.
  await page.keyboard.press("d");
  await expect.poll(() => isFocused(page.getByLabel("Reason for the agent"))).toBe(true);
  // The key that opened the field is not typed into it.
  expect(await page.getByLabel("Reason for the agent").inputValue()).toBe("");
  await page.keyboard.type("a reason");
  await tabTo(page, page.getByRole("button", { name: "Deny", exact: true }));
  await page.keyboard.press("Enter");
  await expectText(page).toContain("No open questions");
  await expectText(page).toContain("a reason");
});

test("chats, creates an agent and chooses a theme without a mouse", async () => {
  const { page } = await ui.open();
  await pressKeys(page, "gc", "Chat");
  await tabTo(page, page.getByLabel("Agent"));
  await page.keyboard.type("writer");
  await page.getByLabel("Message").waitFor();
  await tabTo(page, page.getByLabel("Message"));
  await page.keyboard.type("a haiku, please");
  await page.keyboard.press("Enter");
  await expectText(page, "[role=log]").toMatch(/a haiku, please[\s\S]*The haiku is there\./);
  // Leave the field, so that keys act as shortcuts again.
  await tabTo(page, page.getByText("Skip to content"));
  await pressKeys(page, "ga", "Agents");
  await tabTo(page, page.getByRole("button", { name: "New agent" }).or(page.getByRole("link", { name: "New agent" })));
  await page.keyboard.press("Enter");
  await tabTo(page, page.getByLabel("Name"));
  await page.keyboard.type("made-by-keys");
  await tabTo(page, page.getByLabel("Command"));
  await page.keyboard.type("echo keys");
  await tabTo(page, page.getByRole("button", { name: "Save" }));
  await page.keyboard.press("Enter");
  await page.locator("main h1").filter({ hasText: "made-by-keys" }).waitFor();
  await pressKeys(page, "gt", "Settings");
  await tabTo(page, page.getByRole("radio", { checked: true }));
  await page.keyboard.press("ArrowLeft");
  await expect.poll(() => page.locator("html").getAttribute("data-theme")).toBe("dark");
});

test("creates a schedule, runs it now and opens the run without a mouse", async () => {
  const { page } = await ui.open();
  await pressKeys(page, "gd", "Schedules");
  await tabTo(page, page.getByRole("button", { name: "New schedule" }));
  await page.keyboard.press("Enter");
  await tabTo(page, page.getByLabel("Agent"));
  await page.keyboard.type("echo");
  await tabTo(page, page.getByLabel("Name"));
  await page.keyboard.type("typed");
  await tabTo(page, page.getByRole("button", { name: "Weekdays at 9:00" }));
  await page.keyboard.press("Space");
  await tabTo(page, page.getByLabel("message"));
  await page.keyboard.type("by keys");
  await page.keyboard.press("Enter");
  await page.locator("main h1").filter({ hasText: "typed" }).waitFor();
  await expectText(page).toContain("0 9 * * 1-5");
  await tabTo(page, page.getByRole("button", { name: "Run now" }));
  await page.keyboard.press("Enter");
  const history = page.getByRole("region", { name: "History" });
  await history.locator('[data-status="completed"]').waitFor();
  await tabTo(page, history.getByRole("link"));
  await page.keyboard.press("Enter");
  await expectText(page).toContain("by keys");
});
