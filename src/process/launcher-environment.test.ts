import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { hostHas } from "../../test/fixtures/process/host.ts";
import type { Isolation } from "../model/process.ts";
import { createStart } from "./start.ts";

// Variables that control the loader, libc or perl are for the command, not for the programs that start it.

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-launcher-environment-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const subjects = (["static", "perl"] as const).flatMap((launchMethod) =>
  (["none", "group", "pid", "sandbox"] as const)
    .filter((level) => (level === "pid" || level === "sandbox" ? hostHas(level) : true))
    .map((isolation) => ({ launchMethod, isolation, name: `${isolation} by ${launchMethod}` })),
);

/** Runs `env` at this level. A limit makes level none use a launcher too. */
async function runEnv(
  { launchMethod, isolation }: { launchMethod: "static" | "perl"; isolation: Isolation },
  environment: Record<string, string>,
) {
  const running = createStart({ launchMethods: [launchMethod] })(
    {
      executable: "env",
      arguments: ["-0"],
      workingDirectory: directory,
      environment: { ...environment, PATH: process.env["PATH"]! },
      limits: { openFiles: 64 },
    },
    { isolation, environment: { mode: "replace" } },
    new AbortController().signal,
  );
  const [stdout, stderr, ended] = await Promise.all([text(running.stdout!), text(running.stderr!), running.result]);
  expect(ended).toMatchObject({ exitCode: 0, isolation });
  const variables = stdout.split("\0").flatMap((line) => (line === "" ? [] : [line.split(/=(.*)/s, 2)]));
  const { PATH: _1, PWD: _2, ...received } = Object.fromEntries(variables) as Record<string, string>;
  return { received, stderr };
}

describe.runIf(process.platform === "linux").each(subjects)("$name", (subject) => {
  test("gives the command all its variables under their own names", async () => {
    const given = {
      GIVEN: "1=2\n",
      LD_BIND_NOT: "",
      LD_LIBRARY_PATH: "/nonexistent",
      DYLD_INSERT_LIBRARIES: "/nonexistent.dylib",
      GLIBC_TUNABLES: "glibc.malloc.check=0",
      GCONV_PATH: "/nonexistent",
      LOCPATH: "/nonexistent",
      NLSPATH: "/nonexistent/%N",
      MALLOC_ARENA_MAX: "1",
      RES_OPTIONS: "ndots:1",
      LOCALDOMAIN: "example",
      HOSTALIASES: "/nonexistent",
      TZDIR: "/nonexistent",
      LANGUAGE: "../../nonexistent",
      PERL5OPT: "-Mno_such_module",
      PERL_BADLANG: "1",
      LC_ALL: "xx_YY.UTF-8",
      DROVER_KEEP_LD_LIBRARY_PATH: "its own",
      DROVER_KEEP_: "too",
    };
    expect(await runEnv(subject, given)).toEqual({ received: given, stderr: "" });
  });

  test.runIf(loaderNamesPrograms())("does not let them reach the programs that start it", async () => {
    const { received, stderr } = await runEnv(subject, { LD_DEBUG: "files", LD_PRELOAD: "/nonexistent.so" });
    expect(received).toEqual({ LD_DEBUG: "files", LD_PRELOAD: "/nonexistent.so" });
    expect(startedPrograms(stderr)).toEqual(["env"]);
    expect(stderr.match(/cannot be preloaded/g)).toHaveLength(1);
  });
});

/** Whether the loader prints the name of each program that it starts, as that of glibc does. */
function loaderNamesPrograms(): boolean {
  const { stderr } = spawnSync("env", [], { env: { ...process.env, LD_DEBUG: "files" }, encoding: "utf8" });
  return startedPrograms(stderr ?? "").includes("env");
}

function startedPrograms(loaderOutput: string): string[] {
  return [...loaderOutput.matchAll(/initialize program: (.*)/g)].map(([, name]) => name!);
}
