import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { recordDirectory, tokenFile } from "../../src/model/state-layout.ts";
import { drover, createDirectory } from "./drover.ts";
import { startCommand, startCoordinator } from "./coordinator-process.ts";

test("a fresh start listens on loopback only, with a random token that only its user can read", async () => {
  const first = await startCoordinator(createDirectory());
  const second = await startCoordinator(createDirectory());
  for (const { url, state, token } of [first, second]) {
    expect(new URL(url).hostname).toBe("127.0.0.1");
    expect(statSync(tokenFile(recordDirectory(state), "token")).mode & 0o777).toBe(0o600);
    expect(statSync(state).mode & 0o077).toBe(0);
    // 22 characters of base62 are 130 bits
    expect(token).toMatch(/^drv_[0-9A-Za-z]{22,}$/);
    expect(listeners(new URL(url).port)).toEqual(["0100007F"]);
  }
  expect(second.token).not.toBe(first.token);
  for (const path of ["/runs", "/agents", "/runners", "/events", "/metrics", "/tokens"]) {
    expect((await first.call("GET", path, undefined, null)).status).toBe(401);
    expect((await first.call("GET", path, undefined, second.token)).status).toBe(401);
  }
});

test.each(["0.0.0.0", "::"])("without auth it refuses to listen on %s", async (host) => {
  const directory = createDirectory();
  const refused = await drover(["coordinator", "--host", host, "--port", "0"], {
    cwd: directory,
    env: { AUTH_ENABLED: "false", DROVER_STATE_DIR: join(directory, "state") },
  });
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain("DROVER-API-025");
});

test("a runner without a token says that its coordinator cannot prove itself, and one with a token does not", async () => {
  const directory = createDirectory();
  const { url, token } = await startCoordinator(directory, { AUTH_ENABLED: "false" });
  const startRunner = (name: string, key: Record<string, string>): Promise<string> =>
    startCommand(["runner", "-x", "echo", "--name", name], {
      cwd: directory,
      env: { DROVER_STATE_DIR: join(directory, name), DROVER_API_URL: url, ...key },
      ready: /^Offers /m,
    });
  expect(await startRunner("bare", {})).toContain(
    `drover runner: no token is set, so ${url} cannot prove that it is your coordinator; this runner trusts it anyway\n`,
  );
  expect(await startRunner("keyed", { DROVER_API_KEY: token })).not.toContain("no token is set");
});

test("a runner connects to another machine without encryption only with --allow-http", async () => {
  const directory = createDirectory();
  const { url, token } = await startCoordinator(directory);
  // Drover counts 0.0.0.0 as another machine, but it leads to this one, so that no packet leaves it.
  const otherUrl = `http://0.0.0.0:${new URL(url).port}`;
  const runner = ["runner", "-x", "echo"];
  const env = { DROVER_STATE_DIR: join(directory, "runner"), DROVER_API_URL: otherUrl, DROVER_API_KEY: token };
  const refused = await drover(runner, { cwd: directory, env });
  expect(refused.code).toBe(125);
  expect(refused.stderr).toMatch(
    /^drover: http:\/\/0\.0\.0\.0:\d+ is on another machine and not encrypted: .* \[DROVER-API-035\]\n.* --allow-http /,
  );
  const connected = await drover([...runner, "--allow-http"], { cwd: directory, env });
  expect(connected.stderr).toContain(
    `drover: ${otherUrl} is not encrypted: anyone on the network path can read the token and forge responses\n`,
  );
  // It asked the coordinator for a proof. The coordinator gives none, because it does not know this address.
  expect(connected.stderr).toMatch(/so the token was not sent: .* is not one of its addresses\. \[DROVER-API-034\]/);
});

/** The local addresses with a listener on this port, in the kernel's notation. */
function listeners(port: string): string[] {
  const hex = Number(port).toString(16).toUpperCase().padStart(4, "0");
  return ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((file) =>
    readFileSync(file, "utf8")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .flatMap(([, local = "", , state]) =>
        state === "0A" && local.endsWith(`:${hex}`) ? [local.split(":")[0]!] : [],
      ),
  );
}
