import { dirname } from "node:path";
import type { Browser, BrowserContext, Page } from "../test/browser/playwright.ts";
import { percentile } from "./dispatch/figures.ts";
import { median, ms, printTable } from "./rounds.ts";
import { machine, roundsOf, runBench, wants } from "./run-bench.ts";
import { launchChromium, type Place, startPlace } from "./web/place.ts";
import { frames, inputDelays, scripts, tickAges } from "./web/in-page.ts";

const root = dirname(process.argv[2] ?? "");
const runs = 100_000;
const lines = 200_000;

/** Measures the built dashboard in a real Chromium against a `drover up` with a large record on the same machine. */
async function main(): Promise<void> {
  const rounds = roundsOf(5);
  const place = await startPlace(root, runs, lines);
  const browser = await launchChromium(root);
  process.stdout.write(`Chromium ${browser.version()}, ${machine()}, ${rounds} rounds\n`);
  if (wants("load")) await firstLoads(place, browser);
  const rows: string[][] = [];
  const measured = async (what: string, goal: string, measure: () => Promise<number[]>): Promise<void> => {
    const taken: number[][] = [];
    for (let round = 0; round < rounds; round += 1) taken.push(await measure());
    const tails = taken.map((samples) => percentile(samples, 0.95));
    const spread = `${ms(median(tails))} (${ms(Math.min(...tails))}-${ms(Math.max(...tails))})`;
    rows.push([
      what,
      String(taken.flat().length),
      ms(median(taken.flat())),
      spread,
      ms(Math.max(...taken.flat())),
      goal,
    ]);
  };
  if (wants("frame")) await measured("a frame of an empty page, to compare", "", () => emptyPage(browser));
  if (wants("runs"))
    await measured(`a frame, runs list of ${runs.toLocaleString("en")} runs`, "p95 <= 32 ms", () =>
      scrollRuns(place, browser),
    );
  if (wants("log")) {
    const run_id = await ended(place, "lines");
    await measured(`a frame, log of ${lines.toLocaleString("en")} lines`, "p95 <= 32 ms", () =>
      scrollLog(place, browser, run_id),
    );
  }
  if (wants("pixel"))
    await measured("a printed line until it is painted", "p95 <= 100 ms", () => eventToPixel(place, browser));
  if (wants("typing"))
    await measured("a key in the chat while text streams, until it is handled", "< 50 ms", () =>
      typing(place, browser),
    );
  printTable("web: responsiveness", ["what", "samples", "p50", "p95 (least-most of the rounds)", "most", "goal"], rows);
  await browser.close();
  await place.stop();
}

async function signedIn({ url, client }: Place, browser: Browser): Promise<{ page: Page; context: BrowserContext }> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  const { code } = await client.signIn.link();
  await page.goto(`${url}/ui/#code=${code}`);
  await page.locator('[data-connection="live"]').waitFor();
  return { page, context };
}

/** What a browser with an empty cache downloads before the page is shown. */
async function firstLoads(place: Place, browser: Browser): Promise<void> {
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
  for (const route of [...routes, `/runs/${await ended(place, "ticks")}`]) {
    const { page, context } = await signedIn(place, browser);
    // Signing in has already loaded a page, so use another profile with the same cookie.
    const fresh = await browser.newContext({ storageState: await context.storageState() });
    const first = await fresh.newPage();
    await first.goto(`${place.url}/ui${route}`);
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

async function emptyPage(browser: Browser): Promise<number[]> {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.setContent('<div style="height: 1000000px"></div>');
  const taken = await page.evaluate<number[]>(frames("document.scrollingElement", 600, 200));
  await page.close();
  return taken;
}

async function scrollRuns(place: Place, browser: Browser): Promise<number[]> {
  const { page, context } = await signedIn(place, browser);
  await page.goto(`${place.url}/ui/runs`);
  await page.getByRole("table", { name: "Runs" }).waitFor();
  // Scroll down as fast as rows arrive, back up, and down again over loaded rows.
  const taken: number[] = [];
  for (const by of [400, -2000, 2000])
    taken.push(...(await page.evaluate<number[]>(frames("document.scrollingElement", by, 300))));
  await context.close();
  return taken;
}

async function scrollLog(place: Place, browser: Browser, run_id: string): Promise<number[]> {
  const { page, context } = await signedIn(place, browser);
  await page.goto(`${place.url}/ui/runs/${run_id}?tab=log`);
  await page.getByText(`line ${lines} of a log`).first().waitFor();
  const taken: number[] = [];
  for (const by of [-400, -40_000, 40_000])
    taken.push(...(await page.evaluate<number[]>(frames('document.querySelector("[role=log]")', by, 200))));
  await context.close();
  return taken;
}

async function eventToPixel(place: Place, browser: Browser): Promise<number[]> {
  const { page, context } = await signedIn(place, browser);
  const { run_id } = await place.client.submit({ agent_name: "ticks" });
  await page.goto(`${place.url}/ui/runs/${run_id}?tab=log`);
  await page.getByRole("log").waitFor();
  // Ignore lines that were there before the measurement started.
  const taken = await page.evaluate<number[]>(tickAges(100));
  await context.close();
  for await (const _ of place.client.runs.follow(run_id)) void _;
  return taken;
}

async function typing(place: Place, browser: Browser): Promise<number[]> {
  const { page, context } = await signedIn(place, browser);
  await page.goto(`${place.url}/ui/chat?agent=talker`);
  await page.getByLabel("Message").fill("talk");
  await page.keyboard.press("Enter");
  await page.getByText("point 3").waitFor();
  await page.getByLabel("Message").focus();
  await page.evaluate(inputDelays);
  for (const key of "a message that is typed while the answer is still on its way, word by word") {
    await page.keyboard.press(key === " " ? "Space" : key);
    await new Promise((resolve) => setTimeout(resolve, 40));
  }
  const taken = await page.evaluate<number[]>("window.inputDelays");
  const open = await place.client.runs.list({ status: ["running"], limit: 10 });
  if (!open.items.some(({ agent_name }) => agent_name === "talker"))
    throw new Error("the text ended before the typing");
  for (const { run_id } of open.items) await place.client.runs.stop(run_id);
  await context.close();
  return taken;
}

async function ended({ client }: Place, agent_name: string): Promise<string> {
  const { run_id } = await client.submit({ agent_name });
  for await (const _ of client.runs.follow(run_id)) void _;
  return run_id;
}

runBench(main, {});
