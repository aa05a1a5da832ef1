import { replaceLargeEvent } from "../model/event-size.ts";
import type {
  LoadSessionResponse,
  LoadSessionRequest,
  SaveSessionResponse,
  SaveSessionRequest,
} from "../model/runner-port.ts";
import type { Store } from "../model/store.ts";

type Owner = string | undefined;

export async function loadSession(
  { runner_id, epoch, run_id, attempt, files_after }: LoadSessionRequest,
  owner: Owner,
  { read }: Pick<Store, "read">,
): Promise<LoadSessionResponse> {
  const runner = { runner_id, epoch, ...(owner === undefined ? {} : { owner }) };
  const loaded = await read.session_state({ run_id, attempt, runner }, files_after);
  if (loaded === "fenced") return { load: "fenced" };
  const { state, files, more } = loaded;
  return {
    load: "loaded",
    state: state && { ...state, bytes: toBase64(state.bytes) },
    files: files.map((file) => ({ ...file, bytes: toBase64(file.bytes) })),
    more,
  };
}

export async function saveSession(
  { runner_id, epoch, bytes, files, events, ...rest }: SaveSessionRequest,
  owner: Owner,
  { apply }: Pick<Store, "apply">,
): Promise<SaveSessionResponse> {
  const runner = { runner_id, epoch, ...(owner === undefined ? {} : { owner }) };
  const [saved] = await apply([
    {
      op: "save_session",
      ...rest,
      events: events.map(replaceLargeEvent),
      runner,
      bytes: bytes === null ? null : Buffer.from(bytes, "base64"),
      files: files.map((file) => (file.type === null ? file : { ...file, bytes: Buffer.from(file.bytes, "base64") })),
    },
  ]);
  if (saved.ok) return { save: "saved", ...(saved.budget === undefined ? {} : { budget: saved.budget }) };
  return saved.conflict === "gap" ? { save: "gap", n: saved.last_n } : { save: saved.conflict };
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
