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
import {
  declineTrust,
  isDecided,
  isTrusted,
  listTrusted,
  revokeTrust,
  trustDirectory,
  getTrustProblem,
} from "./trust.ts";

let base: string;
let env: Record<string, string>;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "drover-trust-")));
  env = { HOME: join(base, "home") };
  makeDirectory("home");
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const isRoot = process.getuid?.() === 0;
const makeDirectory = (path: string): string => {
  mkdirSync(join(base, path), { recursive: true });
  return join(base, path);
};
const getTrustFile = (): string => join(base, "home/.config/drover/trusted.json");

describe("a directory", () => {
  it("is trusted with everything below it until the trust is revoked", () => {
    const project = makeDirectory("project/below");
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
    const project = makeDirectory("project");
    symlinkSync(project, join(base, "link"));
    trustDirectory(join(base, "link"), env);
    const names = ["project", "link", "project/", "project/.", "project/../project", "link/../link"];
    expect(names.filter((name) => isTrusted(join(base, name), env))).toEqual(names);
    expect(listTrusted(env).map(({ path }) => path)).toEqual([project]);
  });

  it("is not trusted through a link whose target was replaced", () => {
    symlinkSync(makeDirectory("good"), join(base, "link"));
    trustDirectory(join(base, "link"), env);
    rmSync(join(base, "link"));
    symlinkSync(makeDirectory("evil"), join(base, "link"));
    expect(isTrusted(join(base, "link"), env)).toBe(false);
  });

  it("is not trusted through a link that leads out of a trusted directory", () => {
    trustDirectory(makeDirectory("good"), env);
    symlinkSync(makeDirectory("evil"), join(base, "good/profiles"));
    expect(isTrusted(join(base, "good/profiles"), env)).toBe(false);
  });

  it.each([
    ["renamed", "other"],
    ["whose name only starts the same", "project-2"],
    ["whose name differs in case", "Project"],
    ["whose name is composed of other code points", "proje\u0301ct"],
    ["above it", "."],
    ["that does not exist", "gone"],
  ])("%s is not trusted with it", (_, name) => {
    trustDirectory(makeDirectory("project"), env);
    trustDirectory(makeDirectory("proj\u00e9ct"), env);
    if (name === "other") renameSync(join(base, "project"), join(base, "other"));
    else if (name !== "." && name !== "gone" && !existsSync(join(base, name))) makeDirectory(name);
    expect(isTrusted(join(base, name), env)).toBe(false);
  });

  it("can be revoked below a trusted directory, and trusted again with it", () => {
    const child = makeDirectory("project/child/deep");
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
    const project = makeDirectory("project");
    expect(isDecided(project, env)).toBe(false);
    declineTrust(project, env);
    expect([isDecided(project, env), isTrusted(project, env)]).toEqual([true, false]);
    trustDirectory(project, env);
    expect(isTrusted(project, env)).toBe(true);
  });

  it("that every user can write to cannot be trusted, and loses the trust it had", () => {
    const project = makeDirectory("project");
    chmodSync(project, 0o777);
    expect(() => trustDirectory(project, env)).toThrow(expect.objectContaining({ code: "DROVER-TRU-002" }));
    chmodSync(project, 0o755);
    trustDirectory(project, env);
    makeDirectory("project/open");
    chmodSync(join(project, "open"), 0o777);
    expect([isTrusted(project, env), isTrusted(join(project, "open"), env)]).toEqual([true, false]);
  });

  it.runIf(isRoot)("of another user, in its place or below it, is not trusted", () => {
    const project = makeDirectory("project");
    trustDirectory(project, env);
    chownSync(makeDirectory("project/guest"), 65534, 65534);
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
    trustDirectory(makeDirectory("project"), env);
    rmSync(join(base, "project"), { recursive: true });
    revokeTrust(join(base, "project"), env);
    expect(listTrusted(env)).toEqual([]);
  });
});

describe("DROVER_TRUST", () => {
  it("accepts only absolute paths", () => {
    const project = makeDirectory("project/below");
    const isTrustedBy = (value: string): boolean => isTrusted(project, { ...env, DROVER_TRUST: value });
    expect(isTrustedBy(join(base, "project"))).toBe(true);
    expect(isTrustedBy(`/nowhere:${base}/:`)).toBe(true);
    for (const value of ["", ":", ".", "project", "~", "*", "/nowhere", `${base}/proj`])
      expect(isTrustedBy(value)).toBe(false);
  });

  it("applies even if the same directory was revoked", () => {
    const project = makeDirectory("project");
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
    trustDirectory(makeDirectory("project"), env);
    expect(statSync(getTrustFile()).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(getTrustFile())).mode & 0o777).toBe(0o700);
  });

  it("is in XDG_CONFIG_HOME if that is absolute", () => {
    const project = makeDirectory("project");
    trustDirectory(project, { ...env, XDG_CONFIG_HOME: join(base, "xdg") });
    expect(existsSync(join(base, "xdg/drover/trusted.json"))).toBe(true);
    expect(isTrusted(project, { ...env, XDG_CONFIG_HOME: "xdg" })).toBe(false);
  });

  it.each([[{}], [{ HOME: "" }], [{ HOME: "relative" }]])("does not exist without a home directory: %j", (none) => {
    const project = makeDirectory("project");
    expect(isTrusted(project, none)).toBe(false);
    expect(() => trustDirectory(project, none)).toThrow(expect.objectContaining({ code: "DROVER-TRU-001" }));
    expect(isTrusted(project, { ...none, DROVER_TRUST: project })).toBe(true);
  });

  const invalidFiles: [what: string, spoil: () => void, expected: RegExp][] = [
    ["writable by the group", () => chmodSync(getTrustFile(), 0o660), /other users can write/],
    ["writable by all", () => chmodSync(getTrustFile(), 0o606), /other users can write/],
    [
      "a link",
      () => {
        renameSync(getTrustFile(), join(base, "elsewhere.json"));
        symlinkSync(join(base, "elsewhere.json"), getTrustFile());
      },
      /is a symbolic link/,
    ],
    [
      "a pipe",
      () => {
        rmSync(getTrustFile());
        execFileSync("mkfifo", [getTrustFile()]);
      },
      /not a regular file/,
    ],
    [
      "a directory",
      () => {
        rmSync(getTrustFile());
        mkdirSync(getTrustFile());
      },
      /not a regular file/,
    ],
    ["not JSON", () => writeFileSync(getTrustFile(), "{"), /not a valid trust file/],
    [
      "JSON of another shape",
      () => writeFileSync(getTrustFile(), '{"folders":[{"path":"x","trusted":true}]}'),
      /not a valid trust file/,
    ],
    ["too large", () => writeFileSync(getTrustFile(), " ".repeat(2 * 1024 * 1024)), /larger than/],
  ];
  it.each(invalidFiles)("is ignored, with a message, when it is %s", (_, spoilFile, expected) => {
    const project = makeDirectory("project");
    trustDirectory(project, env);
    spoilFile();
    expect(isTrusted(project, env)).toBe(false);
    expect(getTrustProblem(env)).toMatch(expected);
    expect(() => trustDirectory(project, env)).toThrow(expect.objectContaining({ code: "DROVER-TRU-001" }));
  });

  it.runIf(isRoot)("is ignored if it belongs to another user, also through a hard link", () => {
    const project = makeDirectory("project");
    trustDirectory(project, env);
    chownSync(getTrustFile(), 65534, 65534);
    expect([isTrusted(project, env), getTrustProblem(env)]).toEqual([false, expect.stringMatching(/belongs to user/)]);
    linkSync(getTrustFile(), `${getTrustFile()}.other`);
    expect(isTrusted(project, env)).toBe(false);
  });

  it("is not locked by a process that died while writing", async () => {
    makeDirectory("home/.config/drover");
    const dead = spawn("true");
    await new Promise((resolve) => dead.once("close", resolve));
    writeFileSync(`${getTrustFile()}.lock`, String(dead.pid));
    trustDirectory(makeDirectory("project"), env);
    expect(isTrusted(join(base, "project"), env)).toBe(true);
    expect(existsSync(`${getTrustFile()}.lock`)).toBe(false);
  });
});
