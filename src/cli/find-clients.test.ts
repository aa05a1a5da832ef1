import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { findClients } from "./find-clients.ts";

const createdDirectories: string[] = [];
afterEach(() => {
  for (const directory of createdDirectories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

/** Creates a directory with these programs, each a shell script. */
function createPrograms(scripts: Record<string, string>): string {
  const directory = mkdtempSync(join(tmpdir(), "drover-clients-"));
  createdDirectories.push(directory);
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(join(directory, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(directory, name), 0o755);
  }
  return directory;
}

describe("findClients", () => {
  it("reports the path and version of each client, and how to install a missing one", async () => {
    const directory = createPrograms({ claude: "echo '2.1.325 (Claude Code)'" });
    const clients = await findClients({ PATH: `${directory}:/usr/bin:/bin` });
    expect(clients["claude"]).toEqual({ found: true, path: join(directory, "claude"), version: "2.1.325" });
    const missingClients = await findClients({ PATH: createPrograms({}) });
    expect(missingClients["claude"]).toMatchObject({ found: false, next: expect.stringContaining("npm install -g") });
    expect(missingClients["claude"]).toMatchObject({ next: expect.stringContaining("CLAUDE_BIN") });
  });

  it("uses the program that the environment variable names", async () => {
    const directory = createPrograms({ "my-claude": "echo version 9.9" });
    const env = { PATH: "/usr/bin:/bin", CLAUDE_BIN: join(directory, "my-claude") };
    expect((await findClients(env))["claude"]).toEqual({
      found: true,
      path: join(directory, "my-claude"),
      version: "9.9",
    });
    const missing = (await findClients({ ...env, CLAUDE_BIN: join(directory, "missing") }))["claude"];
    expect(missing).toMatchObject({ found: false, why: expect.stringContaining("CLAUDE_BIN") });
  });

  it("tolerates a client that hangs, fails or prints nothing", async () => {
    const hangingDirectory = createPrograms({ claude: "trap '' TERM; sleep 60" });
    expect((await findClients({ PATH: `${hangingDirectory}:/usr/bin:/bin` }))["claude"]).toMatchObject({
      found: true,
      version: null,
      why: expect.stringContaining("--version failed"),
    });
    const failingDirectory = createPrograms({ claude: "echo broken >&2; exit 3" });
    expect((await findClients({ PATH: `${failingDirectory}:/usr/bin:/bin` }))["claude"]).toMatchObject({
      version: null,
    });
    const silentDirectory = createPrograms({ claude: "exit 0" });
    expect((await findClients({ PATH: `${silentDirectory}:/usr/bin:/bin` }))["claude"]).toMatchObject({
      version: null,
    });
  });
});
