import type { Readable } from "node:stream";
import { RequestError } from "../model/errors.ts";
import { parseParameters } from "./run-parameters.ts";

/** The size limit for the parameters of a run. */
const maxBytes = 1024 * 1024;

/** Reads the parameters of a run from one JSON object. Empty input means no parameters. */
export async function readStdinParameters(stdin: Readable): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stdin as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > maxBytes)
      throw new RequestError({
        code: "DROVER-PAR-003",
        field: "stdin",
        message: `The parameters on stdin are larger than ${maxBytes / 1024} KB.`,
        next: "Put large content into a file in the workspace and pass its path.",
      });
  }
  const text = decode(Buffer.concat(chunks)).replace(/^\uFEFF/, "");
  return text.trim() === "" ? {} : parseParameters("stdin", text, "DROVER-PAR-006");
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw new RequestError({
      code: "DROVER-PAR-006",
      field: "stdin",
      message: "The parameters on stdin are not UTF-8 text.",
      next: "Pass one JSON object in UTF-8.",
      cause,
    });
  }
}
