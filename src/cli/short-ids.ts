import { isTerminal } from "./io.ts";

const uuid = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
/** Also matches the ids of a browser's token (two uuids) and of a schedule in an agent's file. */
const longId = new RegExp(`^(?:${uuid}|${uuid}\\.${uuid}|agent-[0-9a-f]{32})$`);
const minLength = 8;

/**
 * Shortens ids to as many of their last characters as distinguish them, at least 8. Ids are uuidv7: they begin with the
 * time of creation, so the first 8 characters are the same for about a minute, and the last 12 are random. Ids of another
 * form, such as names of runners, stay complete.
 */
export function createIdShortener(ids: readonly string[]): (id: string) => string {
  const longIds = [...new Set(ids.filter((id) => longId.test(id)))];
  let length = minLength;
  // An id that began with a dash would be taken for an option.
  while (!isDistinct(longIds, length) || longIds.some((id) => id.at(-length) === "-")) length++;
  return (id) => (longId.test(id) ? id.slice(-length) : id);
}

function isDistinct(ids: readonly string[], length: number): boolean {
  return new Set(ids.map((id) => id.slice(-length))).size === ids.length;
}

/** Converts an id for a hint on stderr: short on a terminal, complete in a file or pipe. */
export function toHintId(id: string): string {
  return isTerminal(2) ? createIdShortener([id])(id) : id;
}
