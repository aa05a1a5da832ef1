import type { RunEvent } from "../../model/event.ts";
import type { UserInput } from "../../model/executor.ts";
import { all, type Work } from "../query.ts";

type Said = Extract<RunEvent, { type: "system" }> & { subtype: "user_input"; data: { text: string; by: string } };

// The store's own events have no `n`, which is checked before any body is read.
const selectSaid = `
  select seq, body from events
  where run_no = ? and attempt < ? and n is null and body like '{"type":"system","subtype":"user_input",%' order by seq`;

/** A message to a run, as its log keeps it. `inputsBefore` finds it by how this begins. */
export function inputEvent(text: string, by: string): Said {
  return { type: "system", subtype: "user_input", data: { text, by } };
}

/** What people said to earlier attempts of a run: no runner may have saved it before it was lost. */
export function* inputsBefore(run_no: number, attempt: number): Work<UserInput[]> {
  return (yield all(selectSaid, run_no, attempt)).map(({ seq = null, body = null }) => {
    // Written from an inputEvent.
    const { data } = JSON.parse(String(body)) as Said;
    return { text: data.text, seq: Number(seq) };
  });
}
