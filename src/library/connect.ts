import type { CoordinatorAddress, LocalState } from "./connect-options.ts";
import type { Drover } from "./drover.ts";

/**
 * Connects to the coordinator at `url`. Without `url` and `stateDir`, uses the one at DROVER_API_URL if that is set.
 * Otherwise, connects to the coordinator that serves the state directory. If there is none, opens the state directory in
 * this process until `close`, with its own runner and without listening on a port.
 *
 * Rejects with a HostError if the coordinator does not respond and with a RequestError if it refuses the token.
 */
export async function connect(options: CoordinatorAddress | LocalState = {}): Promise<Drover> {
  // Import this only now, so that importing the package stays fast.
  const { openConnection } = await import("./open-connection.ts");
  return openConnection(options);
}
