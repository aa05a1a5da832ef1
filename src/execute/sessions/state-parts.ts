import { createHash } from "node:crypto";
import { isPartPath, type SessionFile, type SessionState } from "../../model/session-state.ts";
import { RunFailure } from "../scaffold/run-failure.ts";

/** Of one part, and of a state that is saved as it is. */
const partBytes = 1024 * 1024;
const format = "drover-parts-1";

export interface SplitState {
  format: string;
  bytes: Uint8Array;
  parts: SessionFile[];
}

/**
 * A large state becomes a list of its parts, each named by its content. A conversation that only grows keeps all parts
 * but the last, so that a save sends what is new.
 */
export function splitState(given: string, bytes: Uint8Array): SplitState {
  if (bytes.length <= partBytes) return { format: given, bytes, parts: [] };
  const parts: SessionFile[] = [];
  for (let at = 0; at < bytes.length; at += partBytes) {
    const part = bytes.subarray(at, at + partBytes);
    parts.push({ path: nameOf(part), type: "file", bytes: part });
  }
  const list: Manifest = { format: given, parts: parts.map(({ path }) => path) };
  return { format, bytes: Buffer.from(JSON.stringify(list)), parts };
}

interface Manifest {
  format: string;
  parts: string[];
}

/** What `splitState` made of it; null: it was saved as it is. */
export function partsOf(state: SessionState): Manifest | null {
  if (state.format !== format) return null;
  // Written by splitState; the record keeps it as it was.
  return JSON.parse(Buffer.from(state.bytes).toString("utf8")) as Manifest;
}

/** `files` as the record has them: others may be among them. */
export async function joinState(state: SessionState, files: AsyncIterable<SessionFile>): Promise<SessionState> {
  const manifest = partsOf(state);
  if (manifest === null) return state;
  const wanted = new Set(manifest.parts);
  const found = new Map<string, Uint8Array>();
  for await (const { path, bytes } of files) {
    if (!isPartPath(path)) break;
    if (wanted.has(path) && nameOf(bytes) === path) found.set(path, bytes);
  }
  const whole = manifest.parts.map((path) => found.get(path));
  if (whole.some((bytes) => bytes === undefined))
    throw new RunFailure(
      "session_not_found",
      "Parts of the saved state of this session are missing or damaged. Start a new session.",
    );
  // none is undefined
  return { ...state, format: manifest.format, bytes: Buffer.concat(whole as Uint8Array[]) };
}

function nameOf(bytes: Uint8Array): string {
  return `/${createHash("sha256").update(bytes).digest("hex")}`;
}
