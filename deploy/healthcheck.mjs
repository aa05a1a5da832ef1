// The container's health check: exits with 0 if the coordinator on this port answers that it is healthy.
const port = process.argv[2] ?? "8765";
try {
  const { status } = await fetch(`http://127.0.0.1:${port}/health`, { signal: AbortSignal.timeout(4000) });
  process.stdout.write(`The coordinator answered with status ${status}.\n`);
  process.exitCode = status === 200 ? 0 : 1;
} catch (error) {
  process.stdout.write(`The coordinator does not answer on port ${port}: ${error.cause?.message ?? error.message}\n`);
  process.exitCode = 1;
}
