// `npm run bench [NAME...]`: measures Drover and its peers interleaved in one run and prints ratios.
import { spawn } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureWebBuilt } from "./lib/build-web.mjs";
import { ensureBuilt } from "./lib/build.mjs";
import { ensureInstalled } from "./lib/install.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
ensureInstalled(root, "product");
ensureInstalled(join(root, "bench"), "product", "the peers that Drover is compared with");
await ensureBuilt(root);

const known = readdirSync(join(root, "bench")).flatMap((file) => /^([a-z]+)\.bench\.ts$/.exec(file)?.[1] ?? []);
const wanted = process.argv.slice(2).filter((word) => !word.startsWith("-"));
const unknown = wanted.filter((name) => !known.includes(name));
if (unknown.length > 0) {
  process.stderr.write(`Unknown bench ${unknown.join(", ")}. Known: ${known.join(", ")}.\n`);
  process.exit(2);
}

const chosen = wanted.length > 0 ? wanted : known;
if (chosen.includes("agents"))
  ensureInstalled(join(root, "test", "clients"), "product", "the agent clients (about 1 GB, once)");
if (chosen.includes("web")) await ensureWebBuilt(root);
// May fail: a bench without PostgreSQL says so itself, and the others still run.
if (chosen.includes("fleet") || chosen.includes("runners"))
  await node([join(root, "scripts", "lib", "bring-postgres.mjs")]);

const { build } = await import("esbuild");
mkdirSync(join(root, "dist-test"), { recursive: true });
for (const name of chosen) {
  const script = join(root, "dist-test", `bench-${name}.cjs`);
  await build({
    absWorkingDir: root,
    entryPoints: [`bench/${name}.bench.ts`],
    outfile: script,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node20.19",
    external: ["@photostructure/sqlite", "esbuild", "execa", "nano-spawn", "tinyexec"],
    define: { DROVER_VERSION: '"0.0.0-bench"' },
    logOverride: { "empty-import-meta": "silent" },
  });
  const status = await node(["--expose-gc", script, join(root, "bench")]);
  if (status !== 0) process.exit(status);
}
// esbuild's service would keep this process alive.
process.exit(0);

/** Runs Node and resolves to its exit code. Passes signals on, so that the child can stop its servers and clean up. */
function node(args) {
  // Loading extra CA certificates adds 40 ms to every Node start, which would distort the ratios.
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: "inherit" });
  const pass = (signal) => void child.kill(signal);
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) process.on(signal, pass);
  return new Promise((resolve) => {
    child.once("exit", (code) => {
      for (const signal of signals) process.off(signal, pass);
      resolve(code ?? 1);
    });
  });
}
