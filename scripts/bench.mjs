// `npm run bench [NAME...]`: measures Drover and its peers interleaved in one run and prints ratios.
import { spawn } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureWebBuilt } from "./lib/build-web.mjs";
import { ensureBuilt } from "./lib/build.mjs";
import { ensureInstalled } from "./lib/install.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
ensureInstalled(root, "production");
ensureInstalled(join(root, "bench"), "production", "the peers that Drover is compared with");
await ensureBuilt(root);

const benches = readdirSync(join(root, "bench")).flatMap((file) => /^([a-z]+)\.bench\.ts$/.exec(file)?.[1] ?? []);
const requestedNames = process.argv.slice(2).filter((arg) => !arg.startsWith("-"));
const unknownNames = requestedNames.filter((name) => !benches.includes(name));
if (unknownNames.length > 0) {
  process.stderr.write(`Unknown bench: ${unknownNames.join(", ")}. Available: ${benches.join(", ")}.\n`);
  process.exit(2);
}

const selectedNames = requestedNames.length > 0 ? requestedNames : benches;
if (selectedNames.includes("agents"))
  ensureInstalled(join(root, "test", "clients"), "production", "the agent clients (about 1 GB, once)");
if (selectedNames.includes("web")) await ensureWebBuilt(root);
// This may fail. Benches that need PostgreSQL then report the failure, and the others still run.
if (selectedNames.includes("fleet") || selectedNames.includes("runners"))
  await runNode([join(root, "scripts", "lib", "ensure-postgres.mjs")]);

const { build } = await import("esbuild");
mkdirSync(join(root, "dist-test"), { recursive: true });
for (const name of selectedNames) {
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
  const status = await runNode(["--expose-gc", script, join(root, "bench")]);
  if (status !== 0) process.exit(status);
}
// esbuild's service would keep this process alive.
process.exit(0);

/** Runs Node and resolves to its exit code. Passes signals on, so that the child can stop its servers and clean up. */
function runNode(args) {
  // Loading extra CA certificates adds 40 ms to every Node start, which would distort the ratios.
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: "inherit" });
  const forwardSignal = (signal) => void child.kill(signal);
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) process.on(signal, forwardSignal);
  return new Promise((resolve) => {
    child.once("exit", (code) => {
      for (const signal of signals) process.off(signal, forwardSignal);
      resolve(code ?? 1);
    });
  });
}
