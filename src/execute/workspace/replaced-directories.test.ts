import { execFileSync } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { prepareShellRunners } from "../../../test/fixtures/execute/shell-runners.ts";
import { defineExecutor } from "../scaffold/define-executor.ts";
import { emptyPrivateDirectory, makePrivateDirectory } from "./private-directory.ts";

const { setUp, cleanups } = prepareShellRunners();
const isRoot = process.getuid?.() === 0;

/** Runs each part of the prompt as a process, and writes a file after each, as clients do. */
const partsExecutor = defineExecutor({
  name: "in-parts",
  can: { resume: true, fork: true },
  async execute(job) {
    for (const [index, part] of job.prompt.split("\n---\n").entries()) {
      await job.runCli({ command: ["/bin/sh", "-c", part] }).catch(() => undefined);
      writeFileSync(join(job.tmpDir, `by-drover-${index}`), "x");
    }
    return "done";
  },
});

/** Ways in which a run can replace its temporary directory or a parent of it, so that `$OUT` is affected. */
const attacks: Record<string, string> = {
  "a link to another directory": 'rm -rf "$TMPDIR"; ln -s "$OUT" "$TMPDIR"',
  "a relative link": 'rm -rf "$TMPDIR"; ln -s "$(realpath --relative-to="$TMPDIR/.." "$OUT")" "$TMPDIR"',
  "a link to a link": 'rm -rf "$TMPDIR"; ln -sfn "$OUT" "$OUT/../second"; ln -s "$OUT/../second" "$TMPDIR"',
  "a link inside": 'ln -sfn "$OUT" "$TMPDIR/a"; mkdir "$TMPDIR/b"; ln -sfn "$OUT" "$TMPDIR/b/c"; chmod 0 "$TMPDIR/b"',
  "a link above it": 'P=$(dirname "$TMPDIR"); rm -rf "$P"; ln -s "$OUT" "$P"',
  "a link above it, to where a directory has its name":
    'P=$(dirname "$TMPDIR"); mv -T "$OUT/inner" "$OUT/$(basename "$TMPDIR")"; rm -rf "$P"; ln -s "$OUT" "$P"',
  "a link to where it was moved, and another link there":
    'M="$OUT/../moved-$$"; mv "$TMPDIR" "$M"; ln -s "$M" "$TMPDIR"; rm -rf "$M"; ln -s "$OUT" "$M"',
  "a link to a file": 'rm -rf "$TMPDIR"; ln -s "$OUT/kept" "$TMPDIR"',
  "a link to nothing": 'rm -rf "$TMPDIR"; ln -s "$OUT/nothing" "$TMPDIR"',
  "a link to itself": 'rm -rf "$TMPDIR"; ln -s "$TMPDIR" "$TMPDIR"',
  "a file": 'rm -rf "$TMPDIR"; echo x > "$TMPDIR"',
  "a hard link to a file": 'rm -rf "$TMPDIR"; ln "$OUT/kept" "$TMPDIR"',
  "a FIFO": 'rm -rf "$TMPDIR"; mkfifo "$TMPDIR"',
  "nothing at all": 'rm -rf "$TMPDIR"; rmdir "$(dirname "$TMPDIR")"',
  "a directory without permissions": 'chmod 0 "$TMPDIR"',
  "a link in the place of a file to be written": 'ln -sf "$OUT/kept" "$TMPDIR/by-drover-9"',
  ...(isRoot ? { "a device": 'rm -rf "$TMPDIR"; mknod "$TMPDIR" c 1 3' } : {}),
};

describe.each(Object.entries(attacks))("a temporary directory replaced by %s", (_, attack) => {
  test("is created again for the next process, and nothing outside changes when it is removed", async () => {
    const { fixture, supervise, runner, directory, submit, waitForEnd } = await setUp({ executor: partsExecutor });
    const outside = join(directory, "outside");
    mkdirSync(join(outside, "inner", "below"), { recursive: true });
    for (const name of ["kept", "inner/kept", "inner/below/kept"]) writeFileSync(join(outside, name), "as it was");
    const parts = [
      `export OUT='${outside}'; ${attack}`,
      'echo x > "$TMPDIR/by-command"',
      `export OUT='${outside}'; ${attack}`,
    ];
    expect((await waitForEnd(submit(parts.join("\n---\n")))).status).toBe("completed");
    expect((await waitForEnd(submit('echo x > "$TMPDIR/next"'))).status).toBe("completed");
    await runner.stop();
    cleanups.push((await fixture.open({ supervise })).stop);
    const files = execFileSync("find", [outside, "!", "-type", "d"], { encoding: "utf8" }).trim().split("\n");
    expect(files.map((file) => file.slice(file.lastIndexOf("/")))).toEqual(["/kept", "/kept", "/kept"]);
    for (const file of files) expect(readFileSync(file, "utf8")).toBe("as it was");
    const { tmpRoot } = supervise.directories;
    expect([lstatSync(tmpRoot).isDirectory(), readdirSync(tmpRoot)]).toEqual([true, []]);
  });
});

test("replaces a symlink below the state directory, but not one above it", async () => {
  const { directory } = await setUp();
  for (const name of ["outside/b/c", "real"]) mkdirSync(join(directory, name), { recursive: true });
  symlinkSync("real", join(directory, "state"));
  symlinkSync("../outside", join(directory, "real", "a"));
  makePrivateDirectory(join(directory, "state"), join(directory, "state", "a", "b", "c"));
  expect(lstatSync(join(directory, "state")).isSymbolicLink()).toBe(true);
  expect(realpathSync(join(directory, "state", "a", "b", "c"))).toBe(
    join(realpathSync(directory), "real", "a", "b", "c"),
  );
  await emptyPrivateDirectory(join(directory, "state"), join(directory, "state", "a"), () => undefined);
  expect([readdirSync(join(directory, "real", "a")), readdirSync(join(directory, "outside", "b"))]).toEqual([
    [],
    ["c"],
  ]);
});

test.each([
  ["work", "w=$(pwd); cd /; rm -rf $w; ln -s $OUT $w"],
  ["homes", 'rm -rf "$HOME"; ln -s $OUT "$HOME"'],
  ["work, all of it", "w=$(dirname $(pwd)); cd /; rm -rf $w; ln -s $OUT $w"],
  ["homes, all of it", 'h=$(dirname "$HOME"); rm -rf "$h"; ln -s $OUT "$h"'],
  ["the marks of sessions", 'o=$(echo "$(dirname "$HOME")".owners/*); rm -rf "$o"; ln -s $OUT "$o"'],
  ["one mark", 'm=$(echo "$(dirname "$HOME")".owners/*/*); rm -f $m; for f in $m; do ln -s $OUT/kept $f; done'],
])("later runs do not follow a symlink in place of a session's directory (%s)", async (_, attack) => {
  const { directory, submit, waitForEnd } = await setUp({}, true);
  const outside = join(directory, "outside");
  mkdirSync(outside);
  chmodSync(outside, 0o755);
  writeFileSync(join(outside, "kept"), "as it was");
  const first = submit(`OUT='${outside}'; ${attack}; echo done`);
  await waitForEnd(first);
  const touch = 'touch made "$HOME/made"; echo done';
  await waitForEnd(submit(touch, { mode: "resume", session_id: first, executor_session_id: "x" }));
  await waitForEnd(submit(touch, { session_id: first }));
  await waitForEnd(submit(touch));
  expect([readdirSync(outside), readFileSync(join(outside, "kept"), "utf8")]).toEqual([["kept"], "as it was"]);
});
