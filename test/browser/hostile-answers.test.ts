import { beforeAll, expect, test } from "vitest";
import type { Page, Route } from "playwright-core";
import { useDrover } from "./drover-ui.ts";
import { openedStates, seed, waitForContent } from "./every-page.ts";
import { payloads } from "./payloads.ts";

const ui = useDrover();

let pages: Record<string, string>;
beforeAll(async () => {
  pages = await seed(ui.client);
}, 600_000);

/** Fields whose values Drover itself sets and by which a page decides what to render. */
const trustedFields = new Set(
  "status type role kind by mode source decision effect stream subtype parked_why next_cursor version executor why run_status".split(
    " ",
  ),
);
const isOwn = (key: string, value: string): boolean =>
  trustedFields.has(key) ||
  // The agent's page finds it by this name.
  (key === "name" && value === "echo") ||
  /_id$|_at$|^at$|sha/.test(key) ||
  /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value);

/** Replaces all text in a response that a model, command, runner or user could have written. */
function replaceText(value: unknown, poison: string, key = ""): unknown {
  if (typeof value === "string") return isOwn(key, value) ? value : poison;
  if (Array.isArray(value)) return value.map((item) => replaceText(item, poison, key));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, one]) => [name, replaceText(one, poison, name)]);
  // In free-form values such as results, parameters and schemas, field names are untrusted too.
  const isFreeForm = /^(?:result_data|parameters|properties|input|output)$/.test(key);
  return Object.fromEntries(
    isFreeForm
      ? entries.flatMap(([name, one]) => [
          [name, one],
          [poison, one],
        ])
      : entries,
  );
}

// URLs are judged by how they start, other text by its whole content.
test.each([
  ["a script", payloads.join("\n")],
  ["a javascript URL", `javascript:window.pwned=1//${payloads.join(" ")}`],
  ["a data URL", `data:text/html,<script>window.pwned=1</script>${payloads.join("\n")}`],
])(
  "300 payloads in all text that a page reads run no script, if each starts like %s",
  async (_, poison) => {
    expect(payloads).toHaveLength(300);
    const { page, context, faults } = await ui.open();
    let answers = 0;
    await context.route(
      (url) => url.origin === ui.url && !url.pathname.startsWith("/ui"),
      async (route: Route) => {
        const request = route.request();
        if (request.method() !== "GET" || new URL(request.url()).pathname === "/events") return route.fallback();
        const answer = await route.fetch();
        if (!answer.headers()["content-type"]?.startsWith("application/json"))
          return route.fulfill({ response: answer });
        answers += 1;
        await route.fulfill({ response: answer, json: replaceText(await answer.json(), poison) });
      },
    );
    const openPage = async (name: string): Promise<void> => {
      // Open everything that a user could open.
      await page.evaluate(
        `document.querySelectorAll("main details:not([open]) > summary").forEach((summary) => summary.click())`,
      );
      expect([name, await page.evaluate("window.pwned"), faults, await unexpectedNodes(page)]).toEqual([
        name,
        undefined,
        [],
        [],
      ]);
    };
    const pagesWithoutPayloads: string[] = [];
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(`${ui.url}/ui${path}`);
      await waitForContent(page);
      await openPage(name);
      if (!(await page.locator("main").innerText()).includes("window.pwned")) pagesWithoutPayloads.push(name);
    }
    // Every page except these, which read nothing, shows the payloads as text.
    expect(pagesWithoutPayloads).toEqual(["runs-none", "agent-new", "schedules-none", "webhooks-none"]);
    for (const name of [
      "palette",
      "runs-filter",
      "run-edit",
      "inbox-edit",
      "inbox-deny",
      "schedule-edit",
      "delivery",
      "new-token",
    ]) {
      const { at, open } = openedStates[name]!;
      await page.goto(`${ui.url}/ui${pages[at]}`);
      await waitForContent(page);
      await open(page);
      await openPage(name);
    }
    expect(answers).toBeGreaterThan(50);
    await context.unrouteAll({ behavior: "wait" });
  },
  900_000,
);

test("text in a page's URL is shown as text or not at all", async () => {
  const { page, faults } = await ui.open();
  for (const payload of payloads.slice(0, 30)) {
    const text = encodeURIComponent(payload);
    for (const path of [
      `/runs?agent=${text}&session=${text}&status=${text}`,
      `/runs/${text}?tab=${text}&step=${text}`,
      `/agents/${text}`,
      `/schedules?agent=${text}`,
      `/schedules/${text}`,
      `/schedules/new?agent=${text}`,
      `/webhooks?webhook=${text}&run=${text}&delivery=${text}`,
      `/chat?agent=${text}&session=${text}`,
      `/${text}`,
    ]) {
      // Navigate within the app: reloading for each would take minutes and test nothing more.
      await page.evaluate(
        `history.pushState(null, "", ${JSON.stringify(`/ui${path}`)}); dispatchEvent(new PopStateEvent("popstate"))`,
      );
      await page.locator("main").waitFor();
    }
    expect([payload, await page.evaluate("window.pwned"), faults, await unexpectedNodes(page)]).toEqual([
      payload,
      undefined,
      [],
      [],
    ]);
  }
}, 600_000);

/** Finds elements that our pages never create, handler attributes, and links that are not http(s). */
function unexpectedNodes(page: Page): Promise<unknown> {
  return page.evaluate(`[...document.body.querySelectorAll("*")].filter((element) =>
    /^(?:iframe|object|embed|base|link|meta|math)$/i.test(element.tagName) ||
    (element.tagName === "SCRIPT" && !element.src.startsWith(location.origin + "/ui/")) ||
    (element.tagName === "IMG" && !element.src.startsWith(location.origin)) ||
    [...element.attributes].some(({ name }) => name.startsWith("on")) ||
    (element.tagName === "A" && element.href !== "" && !/^https?:$/.test(element.protocol)) ||
    (element.tagName === "FORM" && element.hasAttribute("action"))
  ).map((element) => element.outerHTML.slice(0, 200))`);
}
