import { readdirSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { expect, test } from "vitest";
import { createTestDirectories } from "../../../test/fixtures/execute/directories.ts";
import { writePrivate } from "./write-private.ts";

const at = createTestDirectories("tmp");

test("writes a file that only its owner may read, replacing one of an earlier turn", async () => {
  for (const text of ["first", "second"]) {
    const path = await writePrivate(at("tmp"), "mcp.json", text);
    expect([readFileSync(path, "utf8"), statSync(path).mode & 0o777]).toEqual([text, 0o600]);
  }
});

test("replaces a link at its path and leaves the link's target unchanged", async () => {
  symlinkSync(at("outside", "kept"), at("tmp", "mcp.json"));
  await writePrivate(at("tmp"), "mcp.json", "secret");
  expect(readFileSync(at("tmp", "mcp.json"), "utf8")).toBe("secret");
  expect(readFileSync(at("outside", "kept"), "utf8")).toBe("as it was");
});

test("refuses a directory that is a link", async () => {
  symlinkSync(at("outside"), at("link"));
  await expect(writePrivate(at("link"), "mcp.json", "secret")).rejects.toThrow();
  expect(readdirSync(at("outside"))).toEqual(["kept"]);
});
