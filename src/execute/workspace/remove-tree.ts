import { randomUUID } from "node:crypto";
import { rename, rmdir, unlink } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { errorCode, type HeldDirectory, holdDirectory, makeAccessible, whileHeld } from "./held-directory.ts";

/**
 * Removes a directory tree or a file, even if parts of it are not writable or nested deeper than the longest path that
 * the system accepts. Follows no symlink below `base`, even if other processes move and replace directories during the
 * removal. Removes as much as it can, then rejects with the first error.
 */
export async function removeTree(base: string, path: string): Promise<void> {
  const parent = unlessGone(() => holdDirectory(base, dirname(path)));
  if (parent === null) return;
  const entry = { name: Buffer.from(basename(path)), path };
  await whileHeld(parent, () => removeEntry(parent, entry, (directory) => removeContents(directory, path)));
}

interface Entry {
  /** The entry's current name. */
  name: Buffer;
  /** Where it was found, for messages. */
  path: string;
}

/** Other processes may keep adding files, or keep replacing the entry. */
const maxAttempts = 20;
/** How many files are removed at the same time. */
const maxParallel = 32;

async function removeEntry(
  parent: HeldDirectory,
  { name, path }: Entry,
  removeContentsOf: (directory: HeldDirectory) => Promise<void>,
): Promise<void> {
  let error: unknown = null;
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    // A single call if it is empty, as temporary directories nearly always are.
    error = await catchError(rmdir(parent.at(name)));
    if (errorCode(error) === "ENOTDIR") {
      error = await catchError(unlink(parent.at(name)));
      // A directory has taken its place.
      if (errorCode(error) === "EISDIR") continue;
    }
    if (error === null) return;
    if (errorCode(error) !== "ENOTEMPTY" && errorCode(error) !== "EEXIST") break;
    const directory = unlessReplaced(() => parent.open(name));
    if (directory !== null) await whileHeld(directory, removeContentsOf);
  }
  throw cannotRemove(path, error);
}

/** Moves all nested directories up to `top` before it removes them, so that two descriptors suffice for any depth. */
async function removeContents(top: HeldDirectory, path: string): Promise<void> {
  const errors: unknown[] = [];
  const pending = await removeFiles(top, path, errors);
  for (let entry = pending.pop(); entry !== undefined; entry = pending.pop()) {
    const { path: below } = entry;
    await collect(
      errors,
      removeEntry(top, entry, (directory) => moveContents(directory, below, top, pending)),
    );
  }
  if (errors.length > 0) throw errors[0];
}

/** Removes the files of a directory and moves its subdirectories to `top`. */
async function moveContents(directory: HeldDirectory, path: string, top: HeldDirectory, moved: Entry[]): Promise<void> {
  const errors: unknown[] = [];
  for (const entry of await removeFiles(directory, path, errors)) {
    const name = Buffer.from(`.removing-${randomUUID()}`);
    const error = await catchError(moveEntry(directory, entry.name, top.at(name)));
    if (error === null) moved.push({ name, path: entry.path });
    else if (errorCode(error) === "EXDEV")
      // overlayfs does not move a directory of a lower layer.
      await collect(
        errors,
        removeEntry(directory, entry, (inner) => removeContents(inner, entry.path)),
      );
    else errors.push(cannotRemove(entry.path, error));
  }
  if (errors.length > 0) throw errors[0];
}

async function moveEntry(directory: HeldDirectory, name: Buffer, to: Buffer): Promise<void> {
  const error = await catchError(rename(directory.at(name), to));
  if (error === null) return;
  if (errorCode(error) !== "EACCES") throw error;
  // Only a writable directory can be moved.
  const movedDirectory = unlessReplaced(() => directory.open(name));
  if (movedDirectory !== null) await whileHeld(movedDirectory, async () => makeAccessible(movedDirectory));
  await rename(directory.at(name), to);
}

/** Removes everything but directories, and returns those. */
async function removeFiles(directory: HeldDirectory, path: string, errors: unknown[]): Promise<Entry[]> {
  makeAccessible(directory);
  const entries = await directory.entries().catch((error: unknown) => {
    throw cannotRemove(path, error);
  });
  const directories: Entry[] = [];
  const removeFile = async (name: Buffer): Promise<void> => {
    const entry = { name, path: `${path}/${name.toString()}` };
    const error = await catchError(unlink(directory.at(name)));
    if (errorCode(error) === "EISDIR") directories.push(entry);
    else if (error !== null) errors.push(cannotRemove(entry.path, error));
  };
  const files = entries.filter(({ isDirectory }) => !isDirectory);
  for (let offset = 0; offset < files.length; offset += maxParallel)
    await Promise.all(files.slice(offset, offset + maxParallel).map(({ name }) => removeFile(name)));
  for (const { name, isDirectory } of entries)
    if (isDirectory) directories.push({ name, path: `${path}/${name.toString()}` });
  return directories;
}

function cannotRemove(path: string, cause: unknown): Error {
  const code = errorCode(cause);
  const reason = code === null ? String(cause) : String(code);
  return Object.assign(new Error(`${path} cannot be removed: ${reason}`, { cause }), { code });
}

async function collect(errors: unknown[], work: Promise<void>): Promise<void> {
  await work.catch((error: unknown) => errors.push(error));
}

/** null if the call succeeds, or if there is nothing left to remove. */
async function catchError(call: Promise<void>): Promise<unknown> {
  try {
    await call;
    return null;
  } catch (error) {
    return errorCode(error) === "ENOENT" ? null : error;
  }
}

function unlessGone<T>(open: () => T): T | null {
  return unless(["ENOENT"], open);
}

function unlessReplaced<T>(open: () => T): T | null {
  return unless(["ENOENT", "ENOTDIR", "ELOOP"], open);
}

function unless<T>(codes: readonly string[], open: () => T): T | null {
  try {
    return open();
  } catch (error) {
    if (codes.includes(String(errorCode(error)))) return null;
    throw error;
  }
}
