import { chmodSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { beforeEach, describe, expect, test } from "vitest";
import { canSwap, whileSwapping } from "../../test/fixtures/execute/swap-paths.ts";
import { isRoot, openStage, type RunResult, type Subject, subjects } from "../../test/fixtures/process/stage.ts";
import type { StartOnce } from "../../test/fixtures/process/start-once.ts";
import type { StartOptions } from "../model/process.ts";
import { findBwrap } from "./sandbox.ts";
import { createStart } from "./start.ts";
import { openWorkingDirectory } from "./working-directory.ts";

// A command starts in the directory that was checked, even if another process replaces it with a link before the start.
const { newDirectory, run: runOnce } = openStage("work");
const rounds = 25;

let root: string;
let work: string;
let target: string;
let hidden: string;
beforeEach(() => {
  root = newDirectory();
  work = join(root, "work");
  target = join(root, "target");
  hidden = join(root, "hidden");
  for (const directory of [work, target, hidden]) mkdirSync(directory);
});

interface AnySubject extends Omit<Subject, "isolation" | "launchMethods"> {
  isolation: NonNullable<StartOptions["isolation"]>;
  launchMethods: NonNullable<StartOnce["launchMethods"]>[number];
}

function toStartOnce(
  { isolation, launchMethods }: Pick<AnySubject, "isolation" | "launchMethods">,
  PATH?: string,
): StartOnce {
  return {
    command: {
      executable: "/bin/sh",
      arguments: ["-c", "echo made > made"],
      workingDirectory: work,
      timeoutMs: 60_000,
    },
    options: {
      isolation,
      hide: [hidden],
      workRoot: work,
      ...(PATH === undefined ? {} : { parentEnvironment: { PATH } }),
    },
    launchMethods: [launchMethods],
  };
}

const unprotectedSubjects = (["group", "none"] as const).flatMap((isolation) =>
  (["static", "perl", "plain"] as const).map((launchMethods) => ({
    isolation,
    launchMethods,
    uid: undefined,
    name: `${isolation} by ${launchMethods}`,
  })),
);
const autoSubjects = (["static", "perl"] as const).map((launchMethods) => ({
  isolation: "auto" as const,
  launchMethods,
  uid: undefined,
  name: `auto by ${launchMethods}`,
}));

test("opens this process's own directory even if its path now leads elsewhere", () => {
  const before = process.cwd();
  process.chdir(work);
  try {
    const path = process.cwd();
    renameSync(work, join(root, "moved"));
    symlinkSync("target", work);
    const opened = openWorkingDirectory(path, undefined);
    expect(opened).toMatchObject({ realPath: join(root, "moved") });
    if ("close" in opened) opened.close();
  } finally {
    process.chdir(before);
  }
});

test("finds a relative program in the directory that it starts in, even if the path now leads elsewhere", async () => {
  const before = process.cwd();
  for (const [directory, word] of [
    [work, "here"],
    [target, "elsewhere"],
  ] as const) {
    mkdirSync(join(directory, "bin"));
    writeProgram(join(directory, "bin", "tool"), `echo ${word}`);
  }
  process.chdir(work);
  try {
    const workingDirectory = process.cwd();
    renameSync(work, join(root, "moved"));
    symlinkSync("target", work);
    for (const isolation of ["auto", "group", "none"] as const)
      for (const [executable, PATH] of [
        ["bin/tool", "/bin"],
        ["./bin/../bin/tool", "/bin"],
        ["../moved/bin/tool", "/bin"],
        ["tool", "bin:/bin"],
      ] as const) {
        const running = createStart()(
          { executable, workingDirectory },
          { isolation, parentEnvironment: { PATH } },
          new AbortController().signal,
        );
        expect([isolation, executable, await text(running.stdout!)]).toEqual([isolation, executable, "here\n"]);
      }
  } finally {
    process.chdir(before);
  }
});

describe.each<AnySubject>([...subjects, ...unprotectedSubjects, ...autoSubjects])("$name", (subject) => {
  const run = (): RunResult => runOnce(toStartOnce(subject), { uid: subject.uid, directory: root });

  test("starts in the working directory", () => {
    expect(run().error).toBeNull();
    expect(readdirSync(work)).toEqual(["made"]);
  });

  test("starts in a directory inside the work root, but not through a link that leads out of it", async () => {
    mkdirSync(join(work, "in"));
    symlinkSync("in", join(work, "to-in"));
    symlinkSync(target, join(work, "out"));
    const { command, options } = toStartOnce(subject);
    const start = createStart({ launchMethods: [subject.launchMethods] });
    const startIn = (name: string) =>
      start({ ...command, workingDirectory: join(work, name) }, options, new AbortController().signal).result;
    expect((await startIn("to-in")).error).toBeNull();
    expect((await startIn("out")).error).toMatchObject({ code: "DROVER-EXE-010" });
    expect([readdirSync(join(work, "in")), readdirSync(target)]).toEqual([["made"], []]);
  });

  test.runIf(canSwap)("never starts in a link that another process repeatedly swaps with the directory", async () => {
    const link = join(root, "link");
    symlinkSync("target", link);
    const { command, options } = toStartOnce(subject);
    const start = createStart({ launchMethods: [subject.launchMethods] });
    await whileSwapping(work, link, async () => {
      for (let round = 0; round < rounds; round += 1) {
        const ended = await start(command, options, new AbortController().signal).result;
        // bwrap may fail where the link leads.
        if (ended.error !== null) expect(["DROVER-EXE-007", "DROVER-EXE-010"]).toContain(ended.error.code);
        // A process that can replace the directory must not make `auto` select less.
        else if (subject.isolation === "auto") expect(ended.isolation).toBe("pid");
      }
    });
    expect(readdirSync(target)).toEqual([]);
  });
});

describe.each(subjects.filter(({ isolation, uid }) => isolation === "sandbox" && uid === undefined))(
  "$name",
  (subject) => {
    /** Puts a bwrap on PATH that moves the directory away first, puts a link in its place, and then starts the real one. */
    function createReplacingBwrap(setupCommand: string, link: string): string {
      const bin = join(root, "bin");
      mkdirSync(bin);
      writeProgram(
        join(bin, "bwrap"),
        `${setupCommand}\nmv '${work}' '${root}/moved' && ln -s ${link} '${work}'\nexec '${findBwrap()}' "$@"`,
      );
      return bin;
    }

    test.each([
      ["a link", "target"],
      ["an absolute link", "$PWD/target"],
      ["a link to a link", "other"],
      ["a link to its parent", "."],
    ])("never works in another directory if %s replaces the working directory after bwrap has started", (_, link) => {
      symlinkSync("target", join(root, "other"));
      const bin = createReplacingBwrap(`cd '${root}'`, `"${link}"`);
      const result = runOnce(toStartOnce(subject), {
        uid: undefined,
        directory: root,
        prefix: ["env", `PATH=${bin}:${process.env["PATH"]}`],
      });
      expect([readdirSync(target), readdirSync(join(root, "moved"))]).toEqual([[], result.error ? [] : ["made"]]);
    });

    const coverable = ["the command's program", ...(subject.launchMethods === "static" ? ["Drover's launcher"] : [])];
    test.each(coverable)("starts nothing if a link makes bwrap mount the working directory over %s", (program) => {
      const covered = program === "Drover's launcher" ? "../native/bin" : "tools";
      mkdirSync(join(root, "tools"));
      writeProgram(join(root, "tools", "tool"), "true");
      for (const name of ["tool", ...readdirSync(join(root, covered))]) writeProgram(join(work, name), ": > taken");
      const bin = createReplacingBwrap(`cd '${root}'`, `'${covered}'`);
      const { command, ...rest } = toStartOnce(subject);
      const result = runOnce(
        { command: { ...command, executable: join(root, "tools", "tool"), arguments: [] }, ...rest },
        { uid: undefined, directory: root, prefix: ["env", `PATH=${bin}:${process.env["PATH"]}`] },
      );
      expect(readdirSync(join(root, "moved"))).not.toContain("taken");
      expect(result.error).toMatchObject({ code: "DROVER-EXE-010" });
    });

    // As if the link had been replaced with the directory again before bwrap enters it.
    test.runIf(isRoot).each([
      ["", "true"],
      [", even if the host has a mount at its path", `mount --bind '$WORK' '$WORK'`],
    ])("starts nothing if bwrap mounts the working directory elsewhere%s", (_, prepare) => {
      mkdirSync(join(root, "tools"));
      for (const directory of ["tools", "work"]) writeProgram(join(root, directory, "tool"), `: > ${work}/made`);
      const bin = join(root, "bin");
      mkdirSync(bin);
      writeProgram(
        join(bin, "bwrap"),
        `for word do
          shift
          if [ "$previous" = /proc/fs/nfsd ]; then set -- "$@" '${root}/tools'; else set -- "$@" "$word"; fi
          previous=$word
        done
        exec '${findBwrap()}' "$@"`,
      );
      const { command, options, launchMethods } = toStartOnce(subject);
      const result = runOnce(
        {
          command: { ...command, executable: join(root, "tools", "tool"), arguments: [] },
          // Not around the working directory, where mounts stay writable.
          options: { ...options, temporaryDirectory: hidden },
          launchMethods: launchMethods!,
        },
        {
          uid: undefined,
          directory: root,
          prefix: [
            "unshare",
            "--mount",
            "sh",
            "-c",
            `${prepare.replaceAll("$WORK", work)} && exec "$@"`,
            "sh",
            "env",
            `PATH=${bin}:${process.env["PATH"]}`,
          ],
        },
      );
      expect(readdirSync(work)).not.toContain("made");
      expect(result.error).toMatchObject({ code: "DROVER-EXE-010" });
    });
  },
);

function writeProgram(file: string, script: string): void {
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
}
