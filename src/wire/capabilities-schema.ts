import * as z from "zod";

const ability = z.boolean().exactOptional();
/** What an executor can do: see Executor in the model. A coordinator ignores abilities that it does not know. */
export const capabilitiesSchema = z.object({
  resume: ability,
  fork: ability,
  ask: ability,
  input: ability,
  state: ability,
  park: ability,
  fork_at_turn: ability,
});
