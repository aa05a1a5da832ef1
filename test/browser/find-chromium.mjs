// A Chromium to test with: the system's, else one from npm, which is installed only where there is none.
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { ensureInstalled } from "../../scripts/lib/install.mjs";

const folder = import.meta.dirname;
const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

function systemChromium() {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return folders.flatMap((one) => names.map((name) => join(one, name))).find((file) => existsSync(file)) ?? null;
}

export function ensureBrowser() {
  ensureInstalled(folder, "product", "what drives a browser in tests");
  if (systemChromium() === null)
    ensureInstalled(join(folder, "chromium"), "product", "a Chromium to test the dashboard with (65 MB, once)");
}

/** @returns {Promise<{ executablePath: string, env: Record<string, string> }>} */
export async function findChromium() {
  const found = systemChromium();
  if (found !== null) return { executablePath: found, env: {} };
  // what makes it bring the libraries along that a bare machine lacks
  process.env["AWS_EXECUTION_ENV"] ??= "AWS_Lambda_nodejs20.x";
  const { default: chromium } = await import(
    join(folder, "chromium", "node_modules", "@sparticuz", "chromium", "build", "esm", "index.js")
  );
  const executablePath = await chromium.executablePath();
  return { executablePath, env: { LD_LIBRARY_PATH: process.env["LD_LIBRARY_PATH"] ?? "" } };
}
