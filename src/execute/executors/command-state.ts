import type { Executor, RunContext } from "../../model/executor.ts";
import { RunFailure } from "../scaffold/run-failure.ts";

const format = "command-1";

/** The session state of a program whose profile has `can.state`. The state can be any JSON. */
export interface CommandState {
  load(): Promise<{ session_state?: unknown }>;
  /** Returns false if the state could not be saved; an `error` event then gives the reason. */
  save(state: unknown): Promise<boolean>;
}

export function openCommandState(can: Partial<Executor["can"]>, context: RunContext): CommandState {
  const reportUnsaved = async (message: string): Promise<false> => {
    await context.emit({ type: "error", code: "state_not_saved", message });
    return false;
  };
  return {
    async load() {
      if (!can.state) return {};
      const loaded = await context.session.load();
      if (loaded === null) return { session_state: null };
      if (loaded.format !== format)
        throw new RunFailure(
          "session_not_found",
          `The state of this session was saved by a different kind of executor (format ${loaded.format}). Start a new run.`,
        );
      return { session_state: JSON.parse(Buffer.from(loaded.bytes).toString("utf8")) as unknown };
    },
    async save(state) {
      if (!can.state) return reportUnsaved("The state was not saved: the profile does not set `can: { state: true }`.");
      try {
        await context.session.save(format, Buffer.from(JSON.stringify(state)), { files: true });
        return true;
      } catch (error) {
        if (error instanceof RunFailure) return reportUnsaved(error.message);
        throw error;
      }
    },
  };
}
