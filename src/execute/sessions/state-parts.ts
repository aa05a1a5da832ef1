import { createHash } from "node:crypto";
import { isPartPath, type SessionFile, type SessionState } from "../../model/session-state.ts";
import { RunFailure } from "../scaffold/run-failure.ts";

/** The size of a part, and the largest state that is saved whole. */
const partBytes = 1024 * 1024;
const format = "drover-parts-1";

export interface SplitState {
  format: string;
  bytes: Uint8Array;
  parts: SessionFile[];
}

/**
 * Splits a large state into parts, each named by the hash of its content. A growing conversation keeps all parts but the
 * last, so that a save sends only what is new.
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

/** The manifest that splitState() made; null if the state was saved whole. */
export function partsOf(state: SessionState): Manifest | null {
  if (state.format !== format) return null;
  // written by splitState()
  return JSON.parse(Buffer.from(state.bytes).toString("utf8")) as Manifest;
}

/** Joins the parts again. `files` may contain other files too. */
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
  // checked above: none is undefined
  return { ...state, format: manifest.format, bytes: Buffer.concat(whole as Uint8Array[]) };
}

function nameOf(bytes: Uint8Array): string {
  return `/${createHash("sha256").update(bytes).digest("hex")}`;
}
