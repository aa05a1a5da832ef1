import type { RunEvent } from "../../model/event.ts";
import type { UserInput } from "../../model/executor.ts";
import { all, type Work } from "../query.ts";

type UserInputEvent = Extract<RunEvent, { type: "system" }> & {
  subtype: "user_input";
  data: { text: string; by: string };
};

// Events that the store itself adds have no `n`. Checking that first avoids reading most bodies.
const selectInputs = `
  select seq, body from events
  where run_no = ? and attempt < ? and n is null and body like '{"type":"system","subtype":"user_input",%' order by seq`;

/** The event that records a person's message to a run. `readEarlierInputs` relies on the order of its first fields. */
export function createInputEvent(text: string, by: string): UserInputEvent {
  return { type: "system", subtype: "user_input", data: { text, by } };
}

/** Messages that people sent to earlier attempts of a run. A lost runner may not have saved them. */
export function* readEarlierInputs(run_no: number, attempt: number): Work<UserInput[]> {
  return (yield all(selectInputs, run_no, attempt)).map(({ seq = null, body = null }) => {
    // createInputEvent created it.
    const { data } = JSON.parse(String(body)) as UserInputEvent;
    return { text: data.text, seq: Number(seq) };
  });
}
