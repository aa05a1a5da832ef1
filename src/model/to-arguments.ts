import { escapePointer } from "./json-pointer.ts";

export type ListStyle = "comma" | "repeat" | "json";

export interface ArgumentFault {
  /** JSON pointer into the parameters. */
  path: string;
  message: string;
}

/** Linux rejects a single argument of this size or more, including its terminating NUL. */
const maxArgumentBytes = 128 * 1024;
/** Half of Linux's default limit for arguments and environment together. */
const maxTotalBytes = 1024 * 1024;

/** Lists the parameters that a command line cannot represent. */
export function checkArguments(parameters: Readonly<Record<string, unknown>>, listStyle: ListStyle): ArgumentFault[] {
  return toArguments(parameters, listStyle).faults;
}

/**
 * Converts parameters to options: `--key value`, or `--key=value` if the value starts with a dash and could be mistaken
 * for an option. `true` becomes a bare flag, `false`, `null` and empty lists are omitted, and objects become JSON.
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
          "cannot be the name of an option: use letters, digits, '.', '_' and '-', and do not start with '.' or '-'",
      });
      continue;
    }
    for (const { text, valuePath } of toOptionTexts(value, path, listStyle, faults)) {
      const args = text === null ? [`--${name}`] : text.startsWith("-") ? [`--${name}=${text}`] : [`--${name}`, text];
      faults.push(...args.flatMap((arg) => checkArgument(arg, valuePath)));
      result.push(...args);
    }
  }
  const total = result.reduce((sum, arg) => sum + utf8Length(arg) + 1, 0);
  if (faults.length === 0 && total > maxTotalBytes) {
    faults.push({
      path: "",
      message: `the parameters take ${total} bytes as command-line arguments; the limit is ${maxTotalBytes}`,
    });
  }
  return { arguments: result, faults };
}

const namePattern = /^[\p{L}\p{N}_][\p{L}\p{N}_.-]{0,199}$/u;

/** The text after each occurrence of `--name`. A null text is a bare flag. */
function toOptionTexts(
  value: unknown,
  path: string,
  listStyle: ListStyle,
  faults: ArgumentFault[],
): { text: string | null; valuePath: string }[] {
  if (value === true) return [{ text: null, valuePath: path }];
  if (value === false || value === null || value === undefined) return [];
  if (!Array.isArray(value)) return [{ text: toText(value), valuePath: path }];
  if (value.length === 0) return [];
  if (listStyle === "json") return [{ text: JSON.stringify(value), valuePath: path }];
  const items = value.map((item: unknown, index) => ({
    text: toText(item),
    valuePath: `${path}/${index}`,
    isNull: item === null,
  }));
  for (const { valuePath, isNull, text } of items) {
    if (isNull)
      faults.push({
        path: valuePath,
        message: 'null is only possible in a list that is passed as JSON (list_style: "json")',
      });
    else if (listStyle === "comma" && text.includes(",")) {
      faults.push({
        path: valuePath,
        message:
          'contains a comma, which separates the items of this list; set the agent\'s list_style to "repeat" or "json" to allow it',
      });
    }
  }
  return listStyle === "repeat" ? items : [{ text: items.map(({ text }) => text).join(","), valuePath: path }];
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function checkArgument(arg: string, path: string): ArgumentFault[] {
  if (arg.includes("\0")) return [{ path, message: "contains a NUL character, which a command line cannot hold" }];
  if (/\p{Surrogate}/u.test(arg))
    return [{ path, message: "contains half of a surrogate pair, which a command line cannot hold" }];
  const bytes = utf8Length(arg);
  if (bytes < maxArgumentBytes) return [];
  return [{ path, message: `is ${bytes} bytes long; an argument must be shorter than ${maxArgumentBytes} bytes` }];
}

function utf8Length(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0x80) bytes += unit >= 0x800 && (unit < 0xd800 || unit > 0xdfff) ? 2 : 1;
  }
  return bytes;
}
