#!/usr/bin/env node
// http-check.mjs --url URL [--within SECONDS] [--status CODE]: makes one request and prints its outcome as JSON.
// Exits with 1 if the response is not the expected one, so that the run fails and says why.
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: { url: { type: "string" }, within: { type: "string", default: "10" }, status: { type: "string" } },
});
if (!/^https?:\/\//.test(values.url ?? "") || !URL.canParse(values.url)) fail("--url must be an http or https address");
const timeoutMs = Number(values.within) * 1000;
if (!(timeoutMs > 0)) fail(`--within must be a positive number of seconds, not ${values.within}`);

const report = { url: values.url, ok: false, status: null, duration_ms: 0, error: null };
const started = performance.now();
try {
  const response = await fetch(values.url, { signal: AbortSignal.timeout(timeoutMs) });
  await response.body?.cancel();
  report.status = response.status;
  report.ok = values.status === undefined ? response.status < 400 : response.status === Number(values.status);
  if (!report.ok)
    report.error =
      values.status === undefined
        ? `the server responded with ${response.status}, expected a status below 400`
        : `the server responded with ${response.status}, expected ${values.status}`;
} catch (error) {
  const timedOut = error instanceof Error && error.name === "TimeoutError";
  report.error = timedOut
    ? `no response within ${values.within} s`
    : String(error.cause?.code ?? error.cause?.message ?? error.message);
}
report.duration_ms = Math.round(performance.now() - started);
process.stdout.write(`${JSON.stringify(report)}\n`);
if (!report.ok) {
  process.stderr.write(`Error: ${report.error}\n`);
  process.exitCode = 1;
}

function fail(why) {
  process.stderr.write(`Error: ${why}\n`);
  process.exit(1);
}
