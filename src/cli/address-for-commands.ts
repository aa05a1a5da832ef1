import { dirname } from "node:path";
import { listProtectedPaths } from "../define/protected-paths.ts";
import type { Environment } from "../model/environment.ts";
import { isNestedDirectory } from "../model/state-layout.ts";
import { isWithin, resolveRealPaths } from "../process/protected-paths.ts";
import type { Target } from "../wire/http-transport.ts";
import { readAnnouncement } from "./announcement.ts";

/**
 * Finds the address at which commands inside a runner's runs reach the coordinator. The commands cannot reach a socket in
 * a directory that is hidden from them, such as the record. They then get the URL of the port that the coordinator
 * announces. Returns null if the coordinator announces none.
 */
export function findAddressForCommands(
  { url, displayUrl = url }: Target,
  stateDirectory: string,
  env: Environment,
): string | null {
  if (!displayUrl.startsWith("unix:")) return displayUrl;
  const socket = displayUrl.slice("unix:".length);
  const directory = dirname(socket);
  const hidden = resolveRealPaths(listProtectedPaths(stateDirectory, env).hide);
  const isHidden = resolveRealPaths([directory]).some((real) => hidden.some((path) => isWithin(real, path)));
  if (!isHidden || isNestedDirectory(directory)) return displayUrl;
  const announcement = readAnnouncement(dirname(directory));
  return announcement?.socket === socket ? announcement.url : null;
}
