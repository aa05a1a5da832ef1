import { createHash } from "node:crypto";
import { isPartPath, type SessionFile, type SessionState } from "../../model/session-state.ts";
import { RunFailure } from "../scaffold/run-failure.ts";

/** The size of a part. A state of at most this size is saved whole. */
const partBytes = 1024 * 1024;
const partsFormat = "drover-parts-1";

export interface SplitState {
  format: string;
  bytes: Uint8Array;
  parts: SessionFile[];
}

/**
 * Splits a large state into parts, each named by the hash of its content. A growing conversation keeps all parts but the
 * last, so that a save sends only the new parts.
 */
export function splitState(stateFormat: string, bytes: Uint8Array): SplitState {
  if (bytes.length <= partBytes) return { format: stateFormat, bytes, parts: [] };
  const parts: SessionFile[] = [];
  for (let offset = 0; offset < bytes.length; offset += partBytes) {
    const part = bytes.subarray(offset, offset + partBytes);
    parts.push({ path: hashPath(part), type: "file", bytes: part });
  }
  const manifest: Manifest = { format: stateFormat, parts: parts.map(({ path }) => path) };
  return { format: partsFormat, bytes: Buffer.from(JSON.stringify(manifest)), parts };
}

interface Manifest {
  format: string;
  parts: string[];
}

/** Returns the manifest that splitState() created, or null if the state was saved whole. */
export function parseManifest(state: SessionState): Manifest | null {
  if (state.format !== partsFormat) return null;
  // splitState() wrote it.
  return JSON.parse(Buffer.from(state.bytes).toString("utf8")) as Manifest;
}

/** Joins the parts again. `files` may contain other files too. */
export async function joinState(state: SessionState, files: AsyncIterable<SessionFile>): Promise<SessionState> {
  const manifest = parseManifest(state);
  if (manifest === null) return state;
  const partPaths = new Set(manifest.parts);
  const bytesByPath = new Map<string, Uint8Array>();
  for await (const { path, bytes } of files) {
    if (!isPartPath(path)) break;
    if (partPaths.has(path) && hashPath(bytes) === path) bytesByPath.set(path, bytes);
  }
  const partContents = manifest.parts.map((path) => bytesByPath.get(path));
  if (partContents.some((bytes) => bytes === undefined))
    throw new RunFailure(
      "session_not_found",
      "Parts of the saved state of this session are missing or damaged. Start a new session.",
    );
  // The check above ensures that none is undefined.
  return { ...state, format: manifest.format, bytes: Buffer.concat(partContents as Uint8Array[]) };
}

function hashPath(bytes: Uint8Array): string {
  return `/${createHash("sha256").update(bytes).digest("hex")}`;
}
