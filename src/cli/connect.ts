import { readFileSync } from "node:fs";
import { join } from "node:path";
import { findLocal, type Local } from "../local.ts";
import { HostError } from "../model/errors.ts";
import { type Client, createClient } from "../wire/client.ts";
import type { CommandInput } from "./options.ts";

/** Written by a coordinator into its state directory while it serves. */
export interface Beacon {
  url: string;
  pid: number;
}

export const beaconFile = (stateDirectory: string): string => join(stateDirectory, "coordinator.json");

interface Connection {
  client: Client | null;
  token: string | null;
  local: Local;
}

/**
 * The coordinator to talk to: the one named by DROVER_API_URL, else the live one of this state directory,
 * else none. One that is named and does not answer is an error; one that left its beacon behind is not.
 */
export async function connect(input: CommandInput): Promise<Connection> {
  const local = await findLocal(input.env, input.cwd);
  const url = input.env["DROVER_API_URL"];
  const key = input.env["DROVER_API_KEY"] || null;
  if (url) return { client: createClient({ url, token: key }), token: key, local };
  const { stateDirectory } = local.places;
  const beacon = readText(beaconFile(stateDirectory));
  if (beacon === null) return { client: null, token: null, local };
  // our own file, written whole by rename
  const { url: found } = JSON.parse(beacon) as Beacon;
  const token = key ?? (readText(join(stateDirectory, "token"))?.trim() || null);
  const client = createClient({ url: found, token });
  return { client: (await answers(client)) ? client : null, token, local };
}

export async function connectOrFail(input: CommandInput): Promise<Client> {
  const { client, local } = await connect(input);
  if (client) return client;
  throw new HostError({
    code: "DROVER-API-023",
    message: `No coordinator runs for ${local.places.stateDirectory}.`,
    next: "Start one with `drover up`, or name one with DROVER_API_URL and DROVER_API_KEY.",
  });
}

async function answers(client: Client): Promise<boolean> {
  try {
    await client.health();
    return true;
  } catch (error) {
    if (error instanceof HostError) return false;
    throw error;
  }
}

function readText(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}
