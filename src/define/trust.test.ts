import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findPackageRoot } from "./package-directory.ts";
import { declineTrust, isDecided, isTrusted, listTrusted, revokeTrust, trustDirectory, trustProblem } from "./trust.ts";

let base: string;
let env: Record<string, string>;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "drover-trust-")));
  env = { HOME: join(base, "home") };
  make("home");
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const isRoot = process.getuid?.() === 0;
const make = (path: string): string => {
  mkdirSync(join(base, path), { recursive: true });
  return join(base, path);
};
const file = (): string => join(base, "home/.config/drover/trusted.json");

describe("a directory", () => {
  it("is trusted with everything below it until that is revoked", () => {
    const project = make("project/below");
    expect(isTrusted(dirname(project), env)).toBe(false);
    expect(trustDirectory(join(base, "project/"), env)).toBe(join(base, "project"));
    expect([isTrusted(join(base, "project"), env), isTrusted(project, env), isTrusted(base, env)]).toEqual([
      true,
      true,
      false,
    ]);
    revokeTrust(join(base, "project"), env);
    expect(isTrusted(project, env)).toBe(false);
    expect(listTrusted(env)).toEqual([]);
  });

  it("is identified by its real path", () => {
    const project = make("project");
    symlinkSync(project, join(base, "link"));
    trustDirectory(join(base, "link"), env);
    const names = ["project", "link", "project/", "project/.", "project/../project", "link/../link"];
    expect(names.filter((name) => isTrusted(join(base, name), env))).toEqual(names);
    expect(listTrusted(env).map(({ path }) => path)).toEqual([project]);
  });

  it("is a different directory once its link leads elsewhere", () => {
    symlinkSync(make("good"), join(base, "link"));
    trustDirectory(join(base, "link"), env);
    rmSync(join(base, "link"));
    symlinkSync(make("evil"), join(base, "link"));
    expect(isTrusted(join(base, "link"), env)).toBe(false);
  });

  it("is not trusted through a link that leads out of a trusted directory", () => {
    trustDirectory(make("good"), env);
    symlinkSync(make("evil"), join(base, "good/profiles"));
    expect(isTrusted(join(base, "good/profiles"), env)).toBe(false);
  });

  it.each([
    ["renamed", "other"],
    ["of a name with the same beginning", "project-2"],
    ["of the same name in other letters", "Project"],
    ["of the same name composed otherwise", "proje\u0301ct"],
    ["above it", "."],
    ["that is not there", "gone"],
  ])("%s is not the trusted one", (_, name) => {
    trustDirectory(make("project"), env);
    trustDirectory(make("proj\u00e9ct"), env);
    if (name === "other") renameSync(join(base, "project"), join(base, "other"));
    else if (name !== "." && name !== "gone" && !existsSync(join(base, name))) make(name);
    expect(isTrusted(join(base, name), env)).toBe(false);
  });

  it("can be revoked below a trusted directory, and trusted again with it", () => {
    const child = make("project/child/deep");
    trustDirectory(join(base, "project"), env);
    revokeTrust(dirname(child), env);
    expect([isTrusted(join(base, "project"), env), isTrusted(child, env)]).toEqual([true, false]);
    expect(isDecided(child, env)).toBe(true);
    trustDirectory(child, env);
    expect([isTrusted(dirname(child), env), isTrusted(child, env)]).toEqual([false, true]);
    trustDirectory(join(base, "project"), env);
    expect(isTrusted(dirname(child), env)).toBe(true);
  });

  it("that was declined is not asked about again, until it is trusted", () => {
    const project = make("project");
    expect(isDecided(project, env)).toBe(false);
    declineTrust(project, env);
    expect([isDecided(project, env), isTrusted(project, env)]).toEqual([true, false]);
    trustDirectory(project, env);
    expect(isTrusted(project, env)).toBe(true);
  });

  it("that everybody can write to is refused, and loses trust", () => {
    const project = make("project");
    chmodSync(project, 0o777);
    expect(() => trustDirectory(project, env)).toThrow(expect.objectContaining({ code: "DROVER-TRU-002" }));
    chmodSync(project, 0o755);
    trustDirectory(project, env);
    make("project/open");
    chmodSync(join(project, "open"), 0o777);
    expect([isTrusted(project, env), isTrusted(join(project, "open"), env)]).toEqual([true, false]);
  });

  it.runIf(isRoot)("of another user, in its place or below it, is not trusted", () => {
    const project = make("project");
    trustDirectory(project, env);
    chownSync(make("project/guest"), 65534, 65534);
    expect(isTrusted(join(project, "guest"), env)).toBe(false);
    chownSync(project, 65534, 65534);
    expect(isTrusted(project, env)).toBe(false);
    trustDirectory(project, env);
    expect(isTrusted(join(project, "guest"), env)).toBe(true);
  });

  it("that is a file or missing cannot be trusted, but trust in a missing one can be revoked", () => {
    writeFileSync(join(base, "file"), "");
    expect(() => trustDirectory(join(base, "file"), env)).toThrow(expect.objectContaining({ code: "DROVER-USE-004" }));
    expect(() => trustDirectory(join(base, "gone"), env)).toThrow(expect.objectContaining({ code: "DROVER-USE-003" }));
    trustDirectory(make("project"), env);
    rmSync(join(base, "project"), { recursive: true });
    revokeTrust(join(base, "project"), env);
    expect(listTrusted(env)).toEqual([]);
  });
});

describe("DROVER_TRUST", () => {
  it("accepts only absolute paths", () => {
    const project = make("project/below");
    const trusts = (value: string): boolean => isTrusted(project, { ...env, DROVER_TRUST: value });
    expect(trusts(join(base, "project"))).toBe(true);
    expect(trusts(`/nowhere:${base}/:`)).toBe(true);
    for (const value of ["", ":", ".", "project", "~", "*", "/nowhere", `${base}/proj`])
      expect(trusts(value)).toBe(false);
  });

  it("applies even if the same directory was revoked", () => {
    const project = make("project");
    declineTrust(project, env);
    expect(isTrusted(project, { ...env, DROVER_TRUST: project })).toBe(true);
  });
});

it("trusts the package's own directory and nothing around it", () => {
  const root = findPackageRoot()!;
  expect([isTrusted(join(root, "bundled"), env), isTrusted(root, env), isTrusted(dirname(root), env)]).toEqual([
    true,
    true,
    false,
  ]);
});

describe("the trust file", () => {
  it("is accessible only to the user", () => {
    trustDirectory(make("project"), env);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(file())).mode & 0o777).toBe(0o700);
  });

  it("is in XDG_CONFIG_HOME if that is absolute", () => {
    const project = make("project");
    trustDirectory(project, { ...env, XDG_CONFIG_HOME: join(base, "xdg") });
    expect(existsSync(join(base, "xdg/drover/trusted.json"))).toBe(true);
    expect(isTrusted(project, { ...env, XDG_CONFIG_HOME: "xdg" })).toBe(false);
  });

  it.each([[{}], [{ HOME: "" }], [{ HOME: "relative" }]])("does not exist without a home directory: %j", (none) => {
    const project = make("project");
    expect(isTrusted(project, none)).toBe(false);
    expect(() => trustDirectory(project, none)).toThrow(expect.objectContaining({ code: "DROVER-TRU-001" }));
    expect(isTrusted(project, { ...none, DROVER_TRUST: project })).toBe(true);
  });

  const spoil: [what: string, spoil: () => void, expected: RegExp][] = [
    ["writable by the group", () => chmodSync(file(), 0o660), /other users can write/],
    ["writable by all", () => chmodSync(file(), 0o606), /other users can write/],
    [
      "a link",
      () => {
        renameSync(file(), join(base, "elsewhere.json"));
        symlinkSync(join(base, "elsewhere.json"), file());
      },
      /is a symbolic link/,
    ],
    [
      "a pipe",
      () => {
        rmSync(file());
        execFileSync("mkfifo", [file()]);
      },
      /not a regular file/,
    ],
    [
      "a directory",
      () => {
        rmSync(file());
        mkdirSync(file());
      },
      /not a regular file/,
    ],
    ["not JSON", () => writeFileSync(file(), "{"), /not a valid trust file/],
    [
      "JSON of another shape",
      () => writeFileSync(file(), '{"folders":[{"path":"x","trusted":true}]}'),
      /not a valid trust file/,
    ],
    ["larger than it can be", () => writeFileSync(file(), " ".repeat(2 * 1024 * 1024)), /larger than/],
  ];
  it.each(spoil)("is ignored, with a message, when it is %s", (_, spoilIt, expected) => {
    const project = make("project");
    trustDirectory(project, env);
    spoilIt();
    expect(isTrusted(project, env)).toBe(false);
    expect(trustProblem(env)).toMatch(expected);
    expect(() => trustDirectory(project, env)).toThrow(expect.objectContaining({ code: "DROVER-TRU-001" }));
  });

  it.runIf(isRoot)("is ignored if it belongs to another user, also through a hard link", () => {
    const project = make("project");
    trustDirectory(project, env);
    chownSync(file(), 65534, 65534);
    expect([isTrusted(project, env), trustProblem(env)]).toEqual([false, expect.stringMatching(/belongs to user/)]);
    linkSync(file(), `${file()}.other`);
    expect(isTrusted(project, env)).toBe(false);
  });

  it("is not locked by a process that died while writing", async () => {
    make("home/.config/drover");
    const dead = spawn("true");
    await new Promise((resolve) => dead.once("close", resolve));
    writeFileSync(`${file()}.lock`, String(dead.pid));
    trustDirectory(make("project"), env);
    expect(isTrusted(join(base, "project"), env)).toBe(true);
    expect(existsSync(`${file()}.lock`)).toBe(false);
  });
});
