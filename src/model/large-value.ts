const maxMembers = 1000;
const maxCharacters = 64 * 1024;

/** Whether validating the value would take milliseconds. Stops counting as soon as a limit is exceeded. */
export function isLargeValue(value: unknown): boolean {
  const pending = [value];
  let members = 0;
  let characters = 0;
  for (let item = pending.pop(); item !== undefined || pending.length > 0; item = pending.pop()) {
    if (typeof item === "string") characters += item.length;
    if (typeof item !== "object" || item === null) continue;
    const children = Object.values(item);
    members += children.length;
    if (members > maxMembers || characters > maxCharacters) return true;
    pending.push(...children);
  }
  return characters > maxCharacters;
}
