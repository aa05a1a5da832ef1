import * as z from "zod";

const capability = z.boolean().exactOptional();
/** See `Executor.can` in the model. A coordinator ignores capabilities it does not know. */
export const capabilitiesSchema = z.object({
  resume: capability,
  fork: capability,
  ask: capability,
  input: capability,
  state: capability,
  park: capability,
  fork_at_turn: capability,
});
