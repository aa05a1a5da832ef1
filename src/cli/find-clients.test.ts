import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { findClients } from "./find-clients.ts";

const createdFolders: string[] = [];
afterEach(() => {
  for (const folder of createdFolders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Creates a directory with these programs, each a shell script. */
function createPrograms(scripts: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), "drover-clients-"));
  createdFolders.push(folder);
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  return folder;
}

describe("findClients", () => {
  it("reports the path and version of each client, and how to install a missing one", async () => {
    const folder = createPrograms({ claude: "echo '2.1.325 (Claude Code)'" });
    const found = await findClients({ PATH: `${folder}:/usr/bin:/bin` });
    expect(found["claude"]).toEqual({ found: true, path: join(folder, "claude"), version: "2.1.325" });
    const none = await findClients({ PATH: createPrograms({}) });
    expect(none["claude"]).toMatchObject({ found: false, next: expect.stringContaining("npm install -g") });
    expect(none["claude"]).toMatchObject({ next: expect.stringContaining("CLAUDE_BIN") });
  });

  it("uses the program that the variable names", async () => {
    const folder = createPrograms({ mine: "echo version 9.9" });
    const env = { PATH: "/usr/bin:/bin", CLAUDE_BIN: join(folder, "mine") };
    expect((await findClients(env))["claude"]).toEqual({ found: true, path: join(folder, "mine"), version: "9.9" });
    const gone = (await findClients({ ...env, CLAUDE_BIN: join(folder, "gone") }))["claude"];
    expect(gone).toMatchObject({ found: false, why: expect.stringContaining("CLAUDE_BIN") });
  });

  it("tolerates a client that hangs, fails or prints nothing", async () => {
    const slow = createPrograms({ claude: "trap '' TERM; sleep 60" });
    expect((await findClients({ PATH: `${slow}:/usr/bin:/bin` }))["claude"]).toMatchObject({
      found: true,
      version: null,
      why: expect.stringContaining("--version failed"),
    });
    const broken = createPrograms({ claude: "echo broken >&2; exit 3" });
    expect((await findClients({ PATH: `${broken}:/usr/bin:/bin` }))["claude"]).toMatchObject({ version: null });
    const silent = createPrograms({ claude: "exit 0" });
    expect((await findClients({ PATH: `${silent}:/usr/bin:/bin` }))["claude"]).toMatchObject({ version: null });
  });
});
