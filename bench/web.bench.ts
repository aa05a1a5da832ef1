import { dirname } from "node:path";
import type { Browser, BrowserContext, Page } from "../test/browser/playwright.ts";
import { percentile } from "./dispatch/figures.ts";
import { median, formatMs, printTable } from "./rounds.ts";
import { describeMachine, chooseRounds, runBench, isRequested } from "./run-bench.ts";
import { launchChromium, type Dashboard, startDashboard } from "./web/dashboard.ts";
import { frames, inputDelays, scripts, tickAges } from "./web/in-page.ts";

const root = dirname(process.argv[2] ?? "");
const runs = 100_000;
const lines = 200_000;

/** Measures the built dashboard in a real Chromium against a `drover up` with a large record on the same machine. */
async function main(): Promise<void> {
  const rounds = chooseRounds(5);
  const dashboard = await startDashboard(root, runs, lines);
  const browser = await launchChromium(root);
  process.stdout.write(`Chromium ${browser.version()}, ${describeMachine()}, ${rounds} rounds\n`);
  if (isRequested("load")) await measureFirstLoads(dashboard, browser);
  const rows: string[][] = [];
  const measure = async (what: string, goal: string, sample: () => Promise<number[]>): Promise<void> => {
    const durations: number[][] = [];
    for (let round = 0; round < rounds; round += 1) durations.push(await sample());
    const tails = durations.map((samples) => percentile(samples, 0.95));
    const spread = `${formatMs(median(tails))} (${formatMs(Math.min(...tails))}-${formatMs(Math.max(...tails))})`;
    rows.push([
      what,
      String(durations.flat().length),
      formatMs(median(durations.flat())),
      spread,
      formatMs(Math.max(...durations.flat())),
      goal,
    ]);
  };
  if (isRequested("frame"))
    await measure("a frame of an empty page, as a baseline", "", () => scrollEmptyPage(browser));
  if (isRequested("runs"))
    await measure(`a frame, runs list of ${runs.toLocaleString("en")} runs`, "p95 <= 32 ms", () =>
      scrollRuns(dashboard, browser),
    );
  if (isRequested("log")) {
    const run_id = await runToEnd(dashboard, "lines");
    await measure(`a frame, log of ${lines.toLocaleString("en")} lines`, "p95 <= 32 ms", () =>
      scrollLog(dashboard, browser, run_id),
    );
  }
  if (isRequested("pixel"))
    await measure("a printed line until it is painted", "p95 <= 100 ms", () => measureEventToPixel(dashboard, browser));
  if (isRequested("typing"))
    await measure("a key in the chat while text streams, until it is handled", "< 50 ms", () =>
      measureTyping(dashboard, browser),
    );
  printTable("web: responsiveness", ["what", "samples", "p50", "p95 (min-max of the rounds)", "max", "goal"], rows);
  await browser.close();
  await dashboard.stop();
}

async function openSignedInPage(
  { url, client }: Dashboard,
  browser: Browser,
): Promise<{ page: Page; context: BrowserContext }> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  const { code } = await client.signIn.link();
  await page.goto(`${url}/ui/#code=${code}`);
  await page.locator('[data-connection="live"]').waitFor();
  return { page, context };
}

/** What a browser with an empty cache downloads before the page is shown. */
async function measureFirstLoads(dashboard: Dashboard, browser: Browser): Promise<void> {
  const rows: string[][] = [];
  const routes = [
    "/runs",
    "/",
    "/inbox",
    "/agents",
    "/agents/new",
    "/chat",
    "/sessions",
    "/runners",
    "/audit",
    "/settings",
  ];
  for (const route of [...routes, `/runs/${await runToEnd(dashboard, "ticks")}`]) {
    const { page, context } = await openSignedInPage(dashboard, browser);
    // Signing in has already loaded a page, so use another profile with the same cookie.
    const fresh = await browser.newContext({ storageState: await context.storageState() });
    const first = await fresh.newPage();
    await first.goto(`${dashboard.url}/ui${route}`);
    await first.locator("main :is(h1, h2)").first().waitFor({ state: "attached" });
    const { script, style, font, files } =
      await first.evaluate<Record<"script" | "style" | "font" | "files", number>>(scripts);
    const kb = (bytes: number): string => (bytes / 1000).toFixed(1);
    const goal = route === "/runs" ? "<= 160 kB of script" : "";
    rows.push([route.replace(/[0-9a-f-]{36}/, "{run_id}"), kb(script), kb(style), kb(font), String(files), goal]);
    await page.close();
    await Promise.all([context.close(), fresh.close()]);
  }
  printTable(
    "web: first load by route, kB as sent (gzip)",
    ["route", "script", "style", "fonts", "files", "goal"],
    rows,
  );
}

async function scrollEmptyPage(browser: Browser): Promise<number[]> {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.setContent('<div style="height: 1000000px"></div>');
  const durations = await page.evaluate<number[]>(frames("document.scrollingElement", 600, 200));
  await page.close();
  return durations;
}

async function scrollRuns(dashboard: Dashboard, browser: Browser): Promise<number[]> {
  const { page, context } = await openSignedInPage(dashboard, browser);
  await page.goto(`${dashboard.url}/ui/runs`);
  await page.getByRole("table", { name: "Runs" }).waitFor();
  // Scroll down as fast as rows arrive, back up, and down again over loaded rows.
  const durations: number[] = [];
  for (const by of [400, -2000, 2000])
    durations.push(...(await page.evaluate<number[]>(frames("document.scrollingElement", by, 300))));
  await context.close();
  return durations;
}

async function scrollLog(dashboard: Dashboard, browser: Browser, run_id: string): Promise<number[]> {
  const { page, context } = await openSignedInPage(dashboard, browser);
  await page.goto(`${dashboard.url}/ui/runs/${run_id}?tab=log`);
  await page.getByText(`line ${lines} of a log`).first().waitFor();
  const durations: number[] = [];
  for (const by of [-400, -40_000, 40_000])
    durations.push(...(await page.evaluate<number[]>(frames('document.querySelector("[role=log]")', by, 200))));
  await context.close();
  return durations;
}

async function measureEventToPixel(dashboard: Dashboard, browser: Browser): Promise<number[]> {
  const { page, context } = await openSignedInPage(dashboard, browser);
  const { run_id } = await dashboard.client.submit({ agent_name: "ticks" });
  await page.goto(`${dashboard.url}/ui/runs/${run_id}?tab=log`);
  await page.getByRole("log").waitFor();
  // Ignore lines that were there before the measurement started.
  const durations = await page.evaluate<number[]>(tickAges(100));
  await context.close();
  for await (const _ of dashboard.client.runs.follow(run_id)) void _;
  return durations;
}

async function measureTyping(dashboard: Dashboard, browser: Browser): Promise<number[]> {
  const { page, context } = await openSignedInPage(dashboard, browser);
  await page.goto(`${dashboard.url}/ui/chat?agent=talker`);
  await page.getByLabel("Message").fill("talk");
  await page.keyboard.press("Enter");
  await page.getByText("point 3").waitFor();
  await page.getByLabel("Message").focus();
  await page.evaluate(inputDelays);
  for (const key of "a message that is typed while the answer is still on its way, word by word") {
    await page.keyboard.press(key === " " ? "Space" : key);
    await new Promise((resolve) => setTimeout(resolve, 40));
  }
  const durations = await page.evaluate<number[]>("window.inputDelays");
  const open = await dashboard.client.runs.list({ status: ["running"], limit: 10 });
  if (!open.items.some(({ agent_name }) => agent_name === "talker"))
    throw new Error("the text ended before the typing");
  for (const { run_id } of open.items) await dashboard.client.runs.stop(run_id);
  await context.close();
  return durations;
}

async function runToEnd({ client }: Dashboard, agent_name: string): Promise<string> {
  const { run_id } = await client.submit({ agent_name });
  for await (const _ of client.runs.follow(run_id)) void _;
  return run_id;
}

runBench(main, {});
