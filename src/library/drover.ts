import { resolve } from "node:path";
import { saveFile } from "../cli/save-file.ts";
import { verifyContent } from "../cli/verify-content.ts";
import type { Run } from "../model/run.ts";
import type { ApiClient, Submission } from "../wire/client.ts";
import { waitForRun } from "./wait-for-run.ts";

/** What to send to a session. */
export type SessionMessage = Omit<Submission, "agent_name" | "mode" | "session_id" | "fork_at_turn">;

interface SignalOption {
  signal?: AbortSignal;
}

/** A connection to a coordinator: typed functions for the routes that a client needs, and operations that combine several. */
export interface Drover extends Omit<ApiClient, "runs" | "sessions"> {
  runs: ApiClient["runs"] & {
    /**
     * Waits until the run has ended, or is parked until a person resumes it. Reconnects after a lost connection. Aborting
     * the signal rejects with its reason and does not stop the run.
     */
    wait(run_id: string, options?: SignalOption): Promise<Run>;
    /** Reads a file of the run and verifies its SHA-256. */
    read(run_id: string, path: string, options?: SignalOption): Promise<Buffer>;
    /**
     * Saves a file of the run, verifies its SHA-256, and returns its absolute path. Replaces an existing file. If the
     * target is a directory, the file keeps its name.
     */
    download(run_id: string, path: string, target: string, options?: SignalOption): Promise<string>;
  };
  sessions: ApiClient["sessions"] & {
    /** Submits a run that continues the session. */
    resume(session_id: string, message: SessionMessage): Promise<Run>;
    /** Submits a run that continues a copy of the session, or of its first `fork_at_turn` turns. */
    fork(session_id: string, message: SessionMessage & { fork_at_turn?: number }): Promise<Run>;
  };
  /** Ends the connection. If the state directory is open in this process, stops the runs that this connection started. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export function createDrover(client: ApiClient, close: () => Promise<void>): Drover {
  let closed: Promise<void> | null = null;
  const closeOnce = (): Promise<void> => (closed ??= close());
  const continueSession = async (
    mode: "resume" | "fork",
    session_id: string,
    message: SessionMessage,
  ): Promise<Run> => {
    const { agent_name } = await client.sessions.get(session_id);
    return client.submit({ ...message, agent_name, mode, session_id });
  };
  const openFile = async (run_id: string, path: string, { signal }: SignalOption) => {
    const { stream, sha256 } = await client.runs.file(run_id, path, signal);
    return { content: stream, stored: { path, sha256 } };
  };
  return {
    ...client,
    runs: {
      ...client.runs,
      wait: (run_id, options = {}) => waitForRun(client, run_id, options),
      async read(run_id, path, options = {}) {
        const { content, stored } = await openFile(run_id, path, options);
        const chunks: Uint8Array[] = [];
        for await (const chunk of verifyContent(content, stored)) chunks.push(chunk);
        return Buffer.concat(chunks);
      },
      async download(run_id, path, target, options = {}) {
        const { content, stored } = await openFile(run_id, path, options);
        return saveFile(content, stored, { target, cwd: resolve("."), force: true });
      },
    },
    sessions: {
      ...client.sessions,
      resume: (session_id, message) => continueSession("resume", session_id, message),
      fork: (session_id, message) => continueSession("fork", session_id, message),
    },
    close: closeOnce,
    [Symbol.asyncDispose]: closeOnce,
  };
}
