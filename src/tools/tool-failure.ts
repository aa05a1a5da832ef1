import type { ToolFault, ToolFaultCode } from "../model/tool.ts";

/** Thrown to fail a tool call with an error that the model can act on. */
export class ToolFailure extends Error {
  readonly code: ToolFaultCode;
  constructor(code: ToolFaultCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Converts a file system error to a fault that a model can act on. Rethrows unexpected errors. */
export function toToolFault(error: unknown, path: string): ToolFault {
  if (error instanceof ToolFailure) return { code: error.code, message: error.message };
  const fault = errnoFaults[getErrno(error)];
  if (fault === undefined) throw error;
  const [code, explanation] = fault;
  return { code, message: `${path}: ${explanation}` };
}

export function getErrno(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** Returns null for an unknown code. */
export function explainErrno(errno: string): string | null {
  return errnoFaults[errno]?.[1] ?? null;
}

const errnoFaults: Record<string, readonly [ToolFaultCode, string]> = {
  ENOENT: ["not_found", "no such file or directory. Use file.list to see the existing files."],
  ENOTDIR: ["not_a_folder", "part of this path is not a directory."],
  EISDIR: ["not_a_file", "this is a directory, not a file."],
  EXCHANGED: ["not_a_file", "this is not a regular file or it has several hard links, so it cannot be opened."],
  ENXIO: ["not_a_file", "this is not a regular file, so it cannot be opened."],
  ELOOP: ["outside_workspace", "the symbolic links form a loop."],
  EACCES: ["permission_denied", "permission denied."],
  EPERM: ["permission_denied", "permission denied."],
  EROFS: ["permission_denied", "the file system is read-only."],
  ENAMETOOLONG: ["invalid_input", "the name is too long."],
  EINVAL: ["invalid_input", "the file system does not accept this name."],
  EILSEQ: ["invalid_input", "the file system does not accept this name."],
  ENOTEMPTY: ["not_a_file", "this is a directory, not a file."],
  ENOSPC: ["no_space", "no space is left on the disk. Nothing was changed."],
  EDQUOT: ["no_space", "the disk quota is used up. Nothing was changed."],
  EFBIG: ["too_large", "the file would be larger than this system allows. Nothing was changed."],
  EMFILE: ["failed", "Drover has reached its limit of open files. Try again."],
  ENFILE: ["failed", "this machine has reached its limit of open files. Try again."],
};
