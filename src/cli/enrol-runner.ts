import { closeSync, fsyncSync, ftruncateSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { toHostError } from "../record/sqlite/errors.ts";
import { createClient } from "../wire/client.ts";
import type { Target } from "../wire/http-transport.ts";

/** The disk space to reserve. No token is longer. */
const reservedBytes = 128;

/**
 * Exchanges an enrolment for the runner's own token and stores it in `file`. An enrolment works only once, so the disk
 * space for the token is reserved first. The file appears under its name only when it is complete.
 */
export async function enrolRunner(target: Target, enrolment: string, file: string): Promise<void> {
  const partialFile = `${file}.${process.pid}`;
  const fd = withDiskErrors(file, () => {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    return openSync(partialFile, "wx", 0o600);
  });
  try {
    withDiskErrors(file, () => {
      writeSync(fd, " ".repeat(reservedBytes));
      fsyncSync(fd);
    });
    const { token } = await createClient({ ...target, token: enrolment }).runners.enroll();
    withDiskErrors(file, () => {
      ftruncateSync(fd, writeSync(fd, `${token}\n`, 0));
      fsyncSync(fd);
      renameSync(partialFile, file);
    });
  } finally {
    closeSync(fd);
    rmSync(partialFile, { force: true });
  }
}

function withDiskErrors<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw toHostError(error, file);
  }
}
