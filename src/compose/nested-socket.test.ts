import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { canSwap } from "../../test/fixtures/execute/swap-paths.ts";
import { openNestedSocket } from "./nested-socket.ts";

let directory: string;
let swapper: ChildProcess | null = null;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), "drover-socket-"))));
afterEach(() => {
  swapper?.kill("SIGKILL");
  rmSync(directory, { recursive: true, force: true });
});

/** A Perl program that replaces each socket with a symlink to the record as soon as the socket exists. It ends after 120 s at the latest. */
const script = `
  my ($directory, $target) = @ARGV; $| = 1; my $end = time + 120;
  print "ready\\n";
  for (my $n = 0; time < $end; $n++) {
    my $round = sprintf "%s/%d", $directory, $n; my $link = "$directory/link-$n";
    symlink $target, $link; 1 until -S "$round/s" || time >= $end; rename $link, "$round/s"
  }`;

test.skipIf(!canSwap)("does not change the mode of a directory that replaces its socket", async () => {
  const record = join(directory, "record");
  mkdirSync(record);
  chmodSync(record, 0o755);
  swapper = spawn("perl", ["-e", script, directory, record], { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise((resolve) => swapper?.stdout?.once("data", resolve));
  for (let round = 0; round < 40; round += 1) {
    const path = join(directory, String(round), "s");
    const socket = openNestedSocket(
      path,
      () => Promise.reject(new Error("no request")),
      () => undefined,
    );
    await expect
      .poll(() => statSync(path, { throwIfNoEntry: false })?.isDirectory(), { interval: 5, timeout: 60_000 })
      .toBe(true);
    await new Promise(setImmediate);
    expect(statSync(record).mode & 0o777).toBe(0o755);
    await socket.close();
  }
});
