import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished } from "vitest";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { recordDirectory, tokenFile } from "../../src/model/state-layout.ts";
import { type ApiClient, createClient } from "../../src/wire/client.ts";
import { payloads } from "./payloads.ts";
import { findChromium } from "./find-chromium.mjs";

const root = dirname(dirname(import.meta.dirname));
const bin = join(root, "bin", "drover.js");

/** A complete Drover with its examples and agents with scripted models, and a browser that is not signed in. */
export interface Ui {
  readonly url: string;
  readonly client: ApiClient;
  readonly browser: Browser;
  /** Returns a link that signs in once. */
  link(token?: string): Promise<string>;
  /**
   * Opens a page in a new browser profile, signed in with the admin's token or the given one. It is closed at the end of
   * the test, which fails if any page of that profile had a fault.
   */
  open(options?: Parameters<Browser["newContext"]>[0] & { url?: string; token?: string }): Promise<OpenPage>;
}

export interface OpenPage {
  page: Page;
  context: BrowserContext;
  /** Errors, violations of the content security policy, and requests to other hosts. */
  faults: string[];
}

/** Starts one Drover for all tests of a file, with `more` files in its project. Timeouts are long enough for a busy machine. */
export function useDrover(files: Readonly<Record<string, string>> = {}): Ui {
  let directory = "";
  let url = "";
  let client: ApiClient;
  let browser: Browser;
  let end: () => Promise<void> = async () => undefined;
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "drover-ui-"));
    writeProject(directory);
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(dirname(join(directory, file)), { recursive: true });
      writeFileSync(join(directory, file), text);
    }
    const up = spawn(process.execPath, [bin, "up", "--examples", "--port", "0"], {
      cwd: directory,
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: directory,
        DROVER_TRUST: directory,
        DROVER_STATE_DIR: join(directory, "state"),
      },
      stdio: ["ignore", "ignore", "pipe"],
    });
    end = () => new Promise((resolve) => (up.once("close", () => resolve()), up.kill("SIGKILL")));
    let output = "";
    await new Promise<void>((resolve, reject) => {
      up.stderr.on("data", (chunk: Buffer) => {
        output += chunk.toString();
        if (/^Dashboard: /m.test(output)) resolve();
      });
      up.once("close", () => reject(new Error(`drover up exited: ${output}`)));
    });
    url = /^Drover is up at (\S+)/m.exec(output)![1]!;
    client = createClient({
      url,
      token: readFileSync(tokenFile(recordDirectory(join(directory, "state")), "token"), "utf8").trim(),
    });
    const { executablePath, env } = findChromium();
    browser = await chromium.launch({
      executablePath,
      args: ["--no-sandbox", "--disable-dev-shm-usage"],
      env: { ...process.env, ...env },
    });
  });
  afterAll(async () => {
    await browser?.close();
    await end();
    if (directory !== "") rmSync(directory, { recursive: true, force: true });
  });
  const link: Ui["link"] = async (token) => {
    const { code } = await (token === undefined ? client : createClient({ url, token })).signIn.link();
    return `/ui/#code=${code}`;
  };
  return {
    get url() {
      return url;
    },
    get client() {
      return client;
    },
    get browser() {
      return browser;
    },
    link,
    async open({ url: base = url, token, ...options } = {}) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
      context.setDefaultTimeout(240_000);
      const faults = collectFaults(context, base);
      onTestFinished(async () => {
        await context.close();
        expect(faults).toEqual([]);
      });
      const page = await context.newPage();
      await page.goto(base + (await link(token)));
      await page.locator('nav[aria-label="Pages"]').waitFor({ state: "attached" });
      await expect.poll(() => page.locator('[data-connection="live"]').count()).toBe(1);
      return { page, context, faults };
    },
  };
}

/** Collects the faults of all pages of the profile, including those opened later. */
function collectFaults(context: BrowserContext, base: string): string[] {
  const faults: string[] = [];
  context.on("weberror", (error) => faults.push(`error: ${error.error().message}`));
  context.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  context.on("console", (message) => {
    if (/Content Security Policy|Refused to/i.test(message.text())) faults.push(`policy: ${message.text()}`);
  });
  context.on("request", (request) => {
    if (!/^(?:blob|data):/.test(request.url()) && !request.url().startsWith(base))
      faults.push(`request: ${request.url()}`);
  });
  return faults;
}

function writeProject(folder: string): void {
  const write = (file: string, text: string): void => {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  };
  const profile = (name: string, script: string): void =>
    write(
      `profiles/${name}.json`,
      JSON.stringify({ type: "model", agents_dir: `./agents/${name}`, config: { provider: "scripted", script } }),
    );
  profile("model", "scripts/writer.yaml");
  profile("careful", "scripts/careful.json");
  profile("hostile", "scripts/hostile.json");
  write("agents/hostile/hostile.md", "# Hostile\n\nYou say what you should not.\n");
  const tools = payloads
    .slice(0, 30)
    .map((text, index) => ({ name: "file.write", input: { path: `f${index}.md`, content: text } }));
  write(
    "scripts/hostile.json",
    JSON.stringify({ turns: [{ text: payloads.join("\n\n"), tools }, { text: payloads[0] }] }),
  );
  write(
    "agents/careful/careful.md",
    "---\npermissions: { mode: default }\n---\n# Careful\n\nYou ask before you change a file.\n",
  );
  write(
    "scripts/careful.json",
    JSON.stringify({
      turns: [
        ...["first", "second", "third"].map((name) => ({
          text: `I will write the ${name} file.`,
          tools: [{ name: "file.write", input: { path: `${name}.txt`, content: `The ${name} text.\n` } }],
        })),
        { text: "That is all." },
      ],
    }),
  );
  write("agents/model/writer.md", "# Writer\n\nYou write short pieces of text to files, then say what you wrote.\n");
  write(
    "scripts/writer.yaml",
    `turns:
  - text: I will write it into **haiku.txt**.
    tools:
      - name: file.write
        input: { path: haiku.txt, content: "A run leaves its trace.\\n" }
  - text: The haiku is there.
    usage: { input_tokens: 1200, output_tokens: 80 }
`,
  );
}
