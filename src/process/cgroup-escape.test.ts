import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundle } from "../../test/fixtures/process/bundle.ts";
import { hostHas } from "../../test/fixtures/process/host.ts";
import type { StartOnce } from "../../test/fixtures/process/start-once.ts";
import type { ProcessEnd, Isolation } from "../model/process.ts";
import { findCgroupParents } from "./cgroup-parents.ts";

// A command must not leave the cgroup that limits it: at `pid` as a user with write access to delegated cgroups, and at
// `sandbox` as root too.
const memoryParent = findCgroupParents().memoryBytes;
const nobody = 65534;
const isRoot = process.getuid?.() === 0;

/**
 * Commands that try to escape the memory limit. `$top` is the mount point of the hierarchy, `$own` the command's cgroup
 * in it.
 */
const escapes: Record<string, string> = {
  none: "true",
  "into the root cgroup": 'echo $$ > "$top/cgroup.procs"',
  "into the root cgroup, by thread": 'echo $$ > "$top/tasks"; echo 0 > "$top/tasks"',
  "into the cgroup that was delegated": 'echo $$ > "$top$delegated/cgroup.procs"; echo 0 > "$top$delegated/tasks"',
  "one level up": 'echo $$ > "$top$own/../cgroup.procs"',
  "into a cgroup beside it": 'mkdir "$top$delegated/mine" && echo $$ > "$top$delegated/mine/cgroup.procs"',
  "raising its own limit": `for f in memory.memsw.limit_in_bytes memory.limit_in_bytes memory.max memory.swap.max; do
    echo 900000000 > "$top$own/$f"; done`,
  "raising the limit above it": `for f in memory.memsw.limit_in_bytes memory.limit_in_bytes memory.max; do
    echo 900000000 > "$top$own/../$f"; done`,
  "mounting the hierarchy for writing": 'mount -o remount,rw "$top"; echo $$ > "$top/cgroup.procs"',
  "unmounting the read-only mount":
    'umount -l "$top"; mount -t cgroup -o memory none "$top"; echo $$ > "$top/cgroup.procs"',
  "binding it elsewhere":
    'unshare -Urm sh -c \'mount --rbind "$top" "$TMPDIR" && mount -o remount,bind,rw "$TMPDIR"; echo ' +
    '$PPID > "$TMPDIR/cgroup.procs"\'',
  "a hierarchy in a user namespace":
    'unshare -Urm sh -c \'mount -t cgroup -o memory none "$TMPDIR" && echo 0 > "$TMPDIR/cgroup.procs"\'',
  "a cgroup namespace of its own": `unshare -UrmC sh -c '
    mount -t cgroup -o memory none "$TMPDIR" || mount -t cgroup2 none "$TMPDIR"
    for f in memory.memsw.limit_in_bytes memory.limit_in_bytes memory.max; do echo 900000000 > "$TMPDIR/$f"; done
    echo $$ > "$TMPDIR/cgroup.procs"; mkdir "$TMPDIR/mine" && echo $$ > "$TMPDIR/mine/cgroup.procs"
    head -c 200000000 /dev/zero | tail -n 1 > /dev/null'`,
  "through another process": 'for p in /proc/[0-9]*; do echo $$ > "$p/root$top/cgroup.procs"; done',
  "into the namespaces of pid 1": "nsenter -t 1 -m -C sh -c 'echo $PPID > \"$top/cgroup.procs\"'",
  "from a session of its own":
    'setsid sh -c \'(echo 0 > "$top/cgroup.procs"; echo 0 > "$top$delegated/cgroup.procs") & wait\'',
};
const exceedMemory = "head -c 200000000 /dev/zero | tail -n 1 > /dev/null";

describe.runIf(isRoot && memoryParent?.version === 1 && hostHas("pid"))("a command stays in its cgroup", () => {
  const stage = mkdtempSync(join(tmpdir(), "drover-cgroup-"));
  const program = bundle("start-once.ts", stage);
  const delegated = join(memoryParent?.parent ?? "", `drover-test-${process.pid}`);
  beforeAll(() => {
    mkdirSync(delegated);
    for (const name of ["", "cgroup.procs", "tasks"]) chownSync(join(delegated, name), nobody, nobody);
  });
  afterAll(() => {
    rmdirSync(delegated);
    rmSync(stage, { recursive: true, force: true });
  });

  const { top, path } = locateCgroup(delegated);
  const run = (script: string, isolation: Isolation, launchMethod: "static" | "perl", uid: number): ProcessEnd => {
    const tmp = mkdtempSync(join(stage, "tmp-"));
    chmodSync(tmp, 0o777);
    const startOnce: StartOnce = {
      command: {
        executable: "/bin/sh",
        arguments: [
          "-c",
          `own=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup); export own\n${script}\n${exceedMemory}`,
        ],
        workingDirectory: tmp,
        environment: { top, delegated: path, TMPDIR: tmp },
        timeoutMs: 60_000,
        limits: { memoryBytes: 48 << 20 },
      },
      options: { isolation, temporaryDirectory: tmp },
      launchMethods: [launchMethod],
    };
    const enterCgroup = ["-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', delegated];
    const user = ["setpriv", `--reuid=${uid}`, `--regid=${uid}`, "--clear-groups"];
    const { stdout, stderr } = spawnSync(
      "/bin/sh",
      [...enterCgroup, ...user, process.execPath, program, JSON.stringify(startOnce)],
      { cwd: "/", encoding: "utf8" },
    );
    if (stdout === "") throw new Error(stderr);
    return JSON.parse(stdout) as ProcessEnd;
  };

  const subjects = (["static", "perl"] as const).flatMap((launchMethod) => [
    { isolation: "pid" as const, launchMethod, uid: nobody, who: "a user" },
    ...(hostHas("sandbox")
      ? [
          { isolation: "sandbox" as const, launchMethod, uid: nobody, who: "a user" },
          { isolation: "sandbox" as const, launchMethod, uid: 0, who: "root" },
        ]
      : []),
  ]);
  describe.each(subjects)("$isolation by $launchMethod as $who", ({ isolation, launchMethod, uid }) => {
    test.each(Object.entries(escapes))("limits the memory despite this attempt to escape: %s", (_, script) => {
      expect(run(script, isolation, launchMethod, uid).error).toMatchObject({
        code: "DROVER-EXE-009",
        limit: "memoryBytes",
      });
    });
  });

  test("lets the command read its limit, as some programs do to choose their memory usage", () => {
    const script = '[ "$(cat "$top$own/memory.limit_in_bytes")" = 50331648 ] && exit 7';
    expect(run(script, "pid", "static", nobody)).toMatchObject({ exitCode: 7, isolation: "pid" });
  });
});

function locateCgroup(directory: string): { top: string; path: string } {
  const ownCgroup = /^\d+:memory:(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1] ?? "";
  const path = join(ownCgroup, directory.slice(directory.lastIndexOf("/")));
  return { top: directory.slice(0, directory.length - path.length), path };
}
