import { chmodSync, chownSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { isUnencrypted, readAddress } from "./address.ts";
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
])("%s is on this machine, or encrypted", (url, hostname, port) => {
  expect(readAddress(url, false)).toMatchObject({ kind: "tcp", hostname, port });
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
])("%s is refused unless http is allowed", (url) => {
  expect(() => readAddress(url, false)).toThrow(expect.objectContaining({ code: "DROVER-API-035" }));
  expect(readAddress(url, true)).toMatchObject({ kind: "tcp", secure: false });
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
])("%s is no address, and nothing secret in it is repeated", (url) => {
  expect(() => readAddress(url, true)).toThrow(
    expect.objectContaining({ code: "DROVER-API-035", message: expect.not.stringContaining("secret") }),
  );
});

const closing: (() => unknown)[] = [];
afterEach(() => {
  for (const close of closing.splice(0).toReversed()) close();
});

/** A socket that answers, in a folder of its own. */
async function answering(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "drover-socket-"));
  closing.push(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "sock");
  const server = createServer((_, response) =>
    response.end(JSON.stringify({ status: "ok", version: "0", protocol: 1 })),
  );
  await new Promise<void>((resolve) => void server.listen(path, resolve));
  closing.push(() => server.close());
  return path;
}
const health = (path: string) => createClient({ url: `unix:${path}`, token: "drv_secret" }).health();

const nobody = 65_534;
const spoiled: [what: string, spoil: (path: string) => string | void, asRoot?: true][] = [
  ["in a folder that everybody can write to", (path) => chmodSync(join(path, ".."), 0o777)],
  ["in a folder like /tmp", (path) => chmodSync(join(path, ".."), 0o1777)],
  ["in a folder that a group can write to", (path) => chmodSync(join(path, ".."), 0o720)],
  ["in a folder of another user", (path) => chownSync(join(path, ".."), nobody, nobody), true],
  ["of another user", (path) => chownSync(path, nobody, nobody), true],
  [
    "that is a link to one",
    (path) => {
      renameSync(path, `${path}.real`);
      symlinkSync(`${path}.real`, path);
    },
  ],
  [
    "in a linked folder",
    (path) => {
      const other = join(path, "..", "linked");
      symlinkSync(join(path, ".."), other);
      return join(other, "sock");
    },
  ],
  [
    "that is a file",
    (path) => {
      rmSync(path);
      writeFileSync(path, "");
    },
  ],
  [
    "that is a folder",
    (path) => {
      rmSync(path);
      mkdirSync(path);
    },
  ],
];

test.each(spoiled.filter(([, , asRoot]) => !asRoot || process.getuid?.() === 0))(
  "a socket %s is not used",
  async (_what, spoil) => {
    const path = await answering();
    await expect(health(path)).resolves.toMatchObject({ status: "ok" });
    await expect(health(spoil(path) ?? path)).rejects.toMatchObject({ code: "DROVER-API-034" });
  },
);

test("a socket that is not there, or that nobody listens on, is a coordinator that cannot be reached", async () => {
  const path = await answering();
  await expect(health(join(path, "..", "none"))).rejects.toMatchObject({ code: "DROVER-API-023" });
  await expect(health(join(path, "none"))).rejects.toMatchObject({ code: "DROVER-API-023" });
});
