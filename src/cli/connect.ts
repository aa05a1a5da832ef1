import { readFileSync } from "node:fs";
import { join } from "node:path";
import { findLocal, type Local } from "../local.ts";
import { HostError, RequestError } from "../model/errors.ts";
import type { TokenFile } from "../serve/token-file.ts";
import { type Client, createClient } from "../wire/client.ts";
import type { CommandInput } from "./options.ts";

/** Written by a coordinator into its state directory while it serves. */
export interface Beacon {
  url: string;
  pid: number;
  /** Beside it, with the token that it takes. */
  token_file: TokenFile;
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
  const beacon = readBeacon(stateDirectory);
  // whoever has its port now must not be handed our token
  if (!beacon || !isAlive(beacon.pid) || !(await answers(beacon.url))) return { client: null, token: null, local };
  const token = key ?? (readText(join(stateDirectory, beacon.token_file))?.trim() || null);
  return { client: createClient({ url: beacon.url, token }), token, local };
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

/** null where there is none, or none that makes sense: a coordinator that serves writes it whole. */
export function readBeacon(stateDirectory: string): Beacon | null {
  const beacon = tryJson(readText(beaconFile(stateDirectory)) ?? "");
  if (typeof beacon !== "object" || beacon === null || !("url" in beacon) || !("pid" in beacon)) return null;
  const { url, pid } = beacon;
  const token_file = "token_file" in beacon && beacon.token_file === "fleet-token" ? "fleet-token" : "token";
  if (typeof url !== "string" || !URL.canParse(url)) return null;
  return typeof pid === "number" && Number.isInteger(pid) && pid > 0 ? { url, pid, token_file } : null;
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // someone else's process lives as well
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** Asked without a token: does a coordinator answer there? */
async function answers(url: string): Promise<boolean> {
  try {
    const { status, protocol } = await createClient({ url, token: null }).health();
    return status === "ok" && protocol === 1;
  } catch (error) {
    // it is there, and says what it cannot do now
    if (error instanceof HostError && error.code !== "DROVER-API-023" && error.code !== "DROVER-API-028") return true;
    // nobody there, a refusal, or an answer that is not JSON: someone else
    if (error instanceof HostError || error instanceof RequestError || error instanceof SyntaxError) return false;
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
