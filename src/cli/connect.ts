import { findProject, type Project } from "../local.ts";
import { HostError, RequestError } from "../model/errors.ts";
import { type ApiClient, createClient } from "../wire/client.ts";
import type { Target } from "../wire/http-transport.ts";
import { isUnencrypted } from "../wire/address.ts";
import { type Announcement, isAlive, readAnnouncement, readStoredToken } from "./announcement.ts";
import { write } from "./io.ts";
import type { CommandInput } from "./options.ts";

interface Connection {
  client: ApiClient | null;
  /** The address and token that the client uses. */
  target: Target | null;
  project: Project;
}

/**
 * Finds the coordinator: the one named by DROVER_API_URL, or else the one that serves this state directory, or else none.
 * It is an error if a named coordinator does not respond, but not if the announcement in the state directory is stale.
 */
export async function connect(input: CommandInput): Promise<Connection> {
  const project = await findProject(input.env, input.cwd);
  const url = input.env["DROVER_API_URL"];
  const token = input.env["DROVER_API_KEY"] || null;
  if (url?.startsWith("unix:") && input.env["DROVER_NESTED_LOG"]) {
    const { waitForSocket } = await import("../wire/wait-for-socket.ts");
    await waitForSocket(url.slice("unix:".length));
  }
  if (url) return createConnection({ url, token, allowHttp: allowsHttp(input, url) }, project);
  const { stateDirectory } = project.locations;
  const announcement = readAnnouncement(stateDirectory);
  if (announcement && isAlive(announcement.pid)) {
    const knownToken = token ?? readStoredToken(stateDirectory, announcement.token_file);
    for (const target of listTargets(announcement, knownToken)) {
      const candidate = createConnection(target, project);
      if (await isResponding(candidate.client)) return candidate;
    }
  }
  return { client: null, target: null, project };
}

function createConnection(target: Target, project: Project): Connection & { client: ApiClient } {
  return { client: createClient(target), target, project };
}

/** Lists the addresses to try: the socket first, then the port. Without a token the port is not tried, because it may belong to another program by now. */
function listTargets({ url, socket }: Announcement, token: string | null): Target[] {
  return [
    ...(socket === null ? [] : [{ url: `unix:${socket}`, displayUrl: url, token }]),
    ...(token === null ? [] : [{ url, token }]),
  ];
}

/** Whether the token may be sent unencrypted. Warns if it will be. */
function allowsHttp({ env, options }: CommandInput, url: string): boolean {
  const isAllowed = options["allow-http"] === true || env["DROVER_ALLOW_HTTP"] === "1";
  if (isAllowed && isUnencrypted(url))
    write(2, `drover: ${url} is not encrypted: anyone on the network path can read the token and forge responses\n`);
  return isAllowed;
}

export async function connectOrFail(input: CommandInput): Promise<ApiClient> {
  const { client, project } = await connect(input);
  if (client) return client;
  throw new HostError({
    code: "DROVER-API-023",
    message: `No coordinator is running for ${project.locations.stateDirectory}.`,
    next: "Start one with `drover up`, or set DROVER_API_URL and DROVER_API_KEY.",
  });
}

/** Returns false for a socket without a listener, and for a port that another program uses now. */
async function isResponding(client: ApiClient): Promise<boolean> {
  try {
    const { status, protocol } = await client.health();
    return status === "ok" && protocol === 1;
  } catch (error) {
    // The coordinator responded, but is not healthy.
    if (error instanceof HostError && !unreachableCodes.has(error.code)) return true;
    // There was no response, another program responded, the request was refused, or the response is not JSON.
    if (error instanceof HostError || error instanceof RequestError || error instanceof SyntaxError) return false;
    throw error;
  }
}

const unreachableCodes: ReadonlySet<string> = new Set(["DROVER-API-023", "DROVER-API-028", "DROVER-API-034"]);
