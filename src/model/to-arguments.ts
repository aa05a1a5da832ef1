export type ListStyle = "comma" | "repeat" | "json";

export interface ArgumentFault {
  /** JSON pointer into the parameters. */
  path: string;
  message: string;
}

/** Linux takes no single argument of this size or more, its closing NUL included. */
const maxArgumentBytes = 128 * 1024;
/** Half of what Linux gives arguments and environment together by default. */
const maxTotalBytes = 1024 * 1024;

/** What of these parameters could not be handed to a command so that it reads what was meant. */
export function checkArguments(parameters: Readonly<Record<string, unknown>>, listStyle: ListStyle): ArgumentFault[] {
  return toArguments(parameters, listStyle).faults;
}

/**
 * Parameters as options: `--key value`; `--key=value` where the value begins with a dash, so that it is never
 * read as an option. `true` is a bare flag; `false`, `null` and empty lists are left out; objects are JSON.
 */
export function toArguments(
  parameters: Readonly<Record<string, unknown>>,
  listStyle: ListStyle,
): { arguments: string[]; faults: ArgumentFault[] } {
  const result: string[] = [];
  const faults: ArgumentFault[] = [];
  for (const [name, value] of Object.entries(parameters)) {
    const path = `/${escapePointer(name)}`;
    if (!namePattern.test(name)) {
      faults.push({
        path,
        message:
          "cannot be the name of an option: use letters, digits, '.', '_' and '-', not beginning with '.' or '-'",
      });
      continue;
    }
    for (const { text, at } of textsOf(value, path, listStyle, faults)) {
      const words = text === null ? [`--${name}`] : text.startsWith("-") ? [`--${name}=${text}`] : [`--${name}`, text];
      faults.push(...words.flatMap((word) => judge(word, at)));
      result.push(...words);
    }
  }
  const total = result.reduce((sum, word) => sum + utf8Length(word) + 1, 0);
  if (faults.length === 0 && total > maxTotalBytes) {
    faults.push({ path: "", message: `take ${total} bytes as arguments; a command line carries ${maxTotalBytes}` });
  }
  return { arguments: result, faults };
}

const namePattern = /^[\p{L}\p{N}_][\p{L}\p{N}_.-]{0,199}$/u;

/** What follows `--name`, once per use of it; null is a bare flag. */
function textsOf(
  value: unknown,
  path: string,
  listStyle: ListStyle,
  faults: ArgumentFault[],
): { text: string | null; at: string }[] {
  if (value === true) return [{ text: null, at: path }];
  if (value === false || value === null || value === undefined) return [];
  if (!Array.isArray(value)) return [{ text: textOf(value), at: path }];
  if (value.length === 0) return [];
  if (listStyle === "json") return [{ text: JSON.stringify(value), at: path }];
  const items = value.map((item: unknown, index) => ({
    text: textOf(item),
    at: `${path}/${index}`,
    isNull: item === null,
  }));
  for (const { at, isNull, text } of items) {
    if (isNull)
      faults.push({
        path: at,
        message: 'null cannot stand in a list that is not handed over as JSON (list_style: "json")',
      });
    else if (listStyle === "comma" && text.includes(",")) {
      faults.push({
        path: at,
        message:
          'has a comma, which separates the items of this list; the agent can take such items with list_style "repeat" or "json"',
      });
    }
  }
  return listStyle === "repeat" ? items : [{ text: items.map(({ text }) => text).join(","), at: path }];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function judge(word: string, path: string): ArgumentFault[] {
  if (word.includes("\0")) return [{ path, message: "has a NUL character, which no command line can carry" }];
  if (/\p{Surrogate}/u.test(word))
    return [{ path, message: "has half of a surrogate pair, which no command line can carry" }];
  const bytes = utf8Length(word);
  if (bytes < maxArgumentBytes) return [];
  return [{ path, message: `is ${bytes} bytes long; one argument carries less than ${maxArgumentBytes}` }];
}

function utf8Length(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0x80) bytes += unit >= 0x800 && (unit < 0xd800 || unit > 0xdfff) ? 2 : 1;
  }
  return bytes;
}

/** One step of a JSON pointer. */
export function escapePointer(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** The steps of a JSON pointer. */
export function pointerSteps(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}
