import { chmodSync, chownSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { isUnencrypted, parseAddress } from "./address.ts";
import { createClient } from "./client.ts";

test.each([
  ["http://127.0.0.1:8765", "127.0.0.1", 8765],
  ["http://127.1:8765", "127.0.0.1", 8765],
  ["http://0x7f.1", "127.0.0.1", 80],
  ["http://2130706433:1", "127.0.0.1", 1],
  ["http://127.0.0.1.:8765", "127.0.0.1", 8765],
  ["http://LOCALHOST:8765", "localhost", 8765],
  ["http://localhost.:8765", "localhost", 8765],
  ["http://[::1]:8765", "::1", 8765],
  ["http://[0:0:0:0:0:0:0:1]:8765", "::1", 8765],
  ["http://[::ffff:127.0.0.1]:8765", "::ffff:7f00:1", 8765],
  ["https://drover.example", "drover.example", 443],
])("accepts %s, which is on this machine or encrypted", (url, hostname, port) => {
  expect(parseAddress(url, false)).toMatchObject({ kind: "tcp", hostname, port });
  expect(isUnencrypted(url)).toBe(false);
});

test.each([
  "http://drover.example",
  "http://10.0.0.1:8765",
  "http://0.0.0.0:8765",
  "http://[::]:8765",
  "http://[fe80::1]:8765",
  "http://[::ffff:10.0.0.1]:8765",
  "http://localhost.example:8765",
  "http://a.localhost:8765",
  "http://127.0.0.1.example:8765",
  "http://127.0.0.1.nip.io:8765",
  "http://localhost..:8765",
  "http://128.0.0.1",
])("refuses %s unless http is allowed", (url) => {
  expect(() => parseAddress(url, false)).toThrow(expect.objectContaining({ code: "DROVER-API-035" }));
  expect(parseAddress(url, true)).toMatchObject({ kind: "tcp", isSecure: false });
  expect(isUnencrypted(url)).toBe(true);
});

test.each([
  "",
  "nonsense",
  "127.0.0.1:8765",
  "ftp://127.0.0.1",
  "file:///etc/passwd",
  "http://ann:secret@127.0.0.1:8765",
  "http://127.0.0.1:8765@evil.example",
  "https://drv_secret@drover.example",
  "unix:relative.sock",
  "unix:",
  `unix:/${"a".repeat(107)}`,
])("refuses %s as an address without repeating its secrets", (url) => {
  expect(() => parseAddress(url, true)).toThrow(
    expect.objectContaining({ code: "DROVER-API-035", message: expect.not.stringContaining("secret") }),
  );
});

const cleanups: (() => unknown)[] = [];
afterEach(() => {
  for (const cleanUp of cleanups.splice(0).toReversed()) cleanUp();
});

/** Starts a server on a socket in its own directory. */
async function startOnSocket(): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), "drover-socket-"));
  cleanups.push(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, "sock");
  const server = createServer((_, response) =>
    response.end(JSON.stringify({ status: "ok", version: "0", protocol: 1 })),
  );
  await new Promise<void>((resolve) => void server.listen(path, resolve));
  cleanups.push(() => server.close());
  return path;
}
const checkHealth = (path: string) => createClient({ url: `unix:${path}`, token: "drv_secret" }).health();

const nobody = 65_534;
const unsafeSockets: [what: string, makeUnsafe: (path: string) => string | void, asRoot?: true][] = [
  ["in a directory that everybody can write to", (path) => chmodSync(join(path, ".."), 0o777)],
  ["in a directory like /tmp", (path) => chmodSync(join(path, ".."), 0o1777)],
  ["in a directory that a group can write to", (path) => chmodSync(join(path, ".."), 0o720)],
  ["in a directory of another user", (path) => chownSync(join(path, ".."), nobody, nobody), true],
  ["owned by another user", (path) => chownSync(path, nobody, nobody), true],
  [
    "that is a symbolic link",
    (path) => {
      renameSync(path, `${path}.real`);
      symlinkSync(`${path}.real`, path);
    },
  ],
  [
    "in a symlinked directory",
    (path) => {
      const other = join(path, "..", "linked");
      symlinkSync(join(path, ".."), other);
      return join(other, "sock");
    },
  ],
  [
    "that is a regular file",
    (path) => {
      rmSync(path);
      writeFileSync(path, "");
    },
  ],
  [
    "that is a directory",
    (path) => {
      rmSync(path);
      mkdirSync(path);
    },
  ],
];

test.each(unsafeSockets.filter(([, , asRoot]) => !asRoot || process.getuid?.() === 0))(
  "refuses a socket %s",
  async (_what, makeUnsafe) => {
    const path = await startOnSocket();
    await expect(checkHealth(path)).resolves.toMatchObject({ status: "ok" });
    await expect(checkHealth(makeUnsafe(path) ?? path)).rejects.toMatchObject({ code: "DROVER-API-034" });
  },
);

test("a missing socket means that the coordinator is unreachable", async () => {
  const path = await startOnSocket();
  await expect(checkHealth(join(path, "..", "none"))).rejects.toMatchObject({ code: "DROVER-API-023" });
  await expect(checkHealth(join(path, "none"))).rejects.toMatchObject({ code: "DROVER-API-023" });
});
