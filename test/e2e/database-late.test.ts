import { spawn } from "node:child_process";
import { join } from "node:path";
import pg from "pg";
import { afterEach, expect, test } from "vitest";
import { type PostgresServer, startPostgres } from "../postgres/server.ts";
import { bin, createDirectory } from "./drover.ts";

let server: PostgresServer | null = null;
let kill = (): void => undefined;
afterEach(async () => {
  kill();
  await server?.stop();
});

test("a coordinator started before its database waits for it and reports that once", async () => {
  server = await startPostgres();
  const url = await server.createDatabase();
  server.kill("SIGKILL");
  await expect
    .poll(() => new pg.Client({ connectionString: url }).connect().then(() => "there", String))
    .not.toBe("there");

  const cwd = createDirectory();
  const child = spawn(process.execPath, [bin, "coordinator", "--port", "0"], {
    cwd,
    env: {
      PATH: process.env["PATH"],
      HOME: cwd,
      DROVER_STATE_DIR: join(cwd, "state"),
      DATABASE_URL: url,
      DROVER_SECRET: "5e".repeat(32),
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  kill = () => void child.kill("SIGKILL");
  let output = "";
  let code: number | null = null;
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString("utf8")));
  child.once("close", (ended) => (code = ended));
  await expect.poll(() => output).toContain("cannot be reached");
  expect(code).toBeNull();
  await server.restart();
  await expect.poll(() => code ?? output).toMatch(/^Serving /m);
  expect(output.match(/cannot be reached/g)).toHaveLength(1);
  expect(output).not.toContain(new URL(url).password);
});
