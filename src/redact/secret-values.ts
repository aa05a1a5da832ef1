import { looksSecret } from "../model/secret-names.ts";

export interface NamedValue {
  name: string;
  value: string;
}

/**
 * Chooses the values to redact. A variable with a secret's name often holds none: a switch, a number, the path of a key
 * file, an address. Redacting those would garble ordinary text and protect nothing. A variable's value must therefore
 * have at least six characters, must not be a common word or a number below eight digits, and a path or address must
 * have a part that looks random. Values given by name need only four characters.
 */
export function secretValues(
  variables: Readonly<Record<string, string | undefined>>,
  values: readonly NamedValue[],
): NamedValue[] {
  const chosen: NamedValue[] = [];
  for (const { name, value } of values) if (value.trim().length >= 4) chosen.push({ name, value });
  for (const name in variables) {
    if (!looksSecret(name)) continue;
    const value = variables[name];
    if (value !== undefined && isWorthHiding(value.trim())) chosen.push({ name, value });
  }
  return withLines(chosen);
}

/** Adds each line of a value that is long enough to be searched alone. */
function withLines(chosen: readonly NamedValue[]): NamedValue[] {
  const all = new Map<string, string>();
  const add = (value: string, name: string): void => {
    if (!all.has(value)) all.set(value, name);
  };
  for (const { name, value } of chosen) add(value.trim(), name);
  for (const { name, value } of chosen) {
    if (!value.includes("\n")) continue;
    for (const line of value.split("\n")) if (line.trim().length >= 16 && !isFrame(line)) add(line.trim(), name);
  }
  return Array.from(all, ([value, name]) => ({ name, value }));
}

/** The first and last lines of a PEM block are the same for everyone. */
function isFrame(line: string): boolean {
  return line.trimStart().startsWith("-----");
}

function isWorthHiding(value: string): boolean {
  if (value.length < 6 || commonWords.has(value.toLowerCase())) return false;
  if (/^[\d.,]+$/.test(value)) return value.length >= 8;
  if (/^(\.{0,2}|~)\/|^[A-Za-z]:\\/.test(value)) return value.split(/[/\\]/).some(looksRandom);
  if (/^[a-z][a-z0-9+.-]*:\/\/[^@]*$/i.test(value)) return value.split(/[/?&=#:]/).some(looksRandom);
  return true;
}

function looksRandom(part: string): boolean {
  return part.length >= 16 && /\d/.test(part) && /[A-Za-z]/.test(part);
}

const commonWords = new Set(
  (
    "undefined default enabled disabled always optional required localhost development production staging testing " +
    "password secret changeme example anonymous keyring keychain interactive"
  ).split(" "),
);
