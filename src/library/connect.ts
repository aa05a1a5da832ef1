import type { CoordinatorAddress, LocalState } from "./connect-options.ts";
import type { Drover } from "./drover.ts";

/**
 * Connects to a coordinator: to the one at `url`; without `url` and `stateDir`, to the one at DROVER_API_URL; otherwise to
 * the one that serves the state directory. If none serves it, opens the state directory in this process, with a runner of
 * its own, until `close`. Nothing listens on a port then.
 *
 * Rejects with a HostError if the coordinator does not respond and with a RequestError if it refuses the token.
 */
export async function connect(options: CoordinatorAddress | LocalState = {}): Promise<Drover> {
  // Import this only now, so that importing the package stays fast.
  const { openConnection } = await import("./open-connection.ts");
  return openConnection(options);
}
