import type { NumberedEvent } from "../../model/event.ts";
import { write, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { StoredRun } from "../moves/stored-run.ts";

const bind = `
  update sessions set executor_session_id = ? where session_id = ?`;
const bindRun = `
  update runs set executor_session_id = ? where run_no = ?`;

/** Stores the session id that the executor reports in a system event. The last one counts. */
export function* bindSession(run: StoredRun, events: readonly NumberedEvent[]): Work<void> {
  if (run.agent_rev_id === null || run.session_id === null) return;
  for (const { event } of events) {
    if (event.type !== "system" || event.executor_session_id === undefined) continue;
    yield write(bind, toColumn(event.executor_session_id), run.session_id);
    yield write(bindRun, toColumn(event.executor_session_id), run.run_no);
  }
}
