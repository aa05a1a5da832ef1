import { looksSecret } from "../model/secret-names.ts";

export interface NamedValue {
  name: string;
  value: string;
}

/**
 * Chooses the values to redact. A variable with a sensitive name often contains not a secret but a switch, a number, the
 * path of a key file or an address. Redacting those would garble ordinary text and protect nothing. A variable's value must
 * therefore have at least six characters, must not be a common word or a number of fewer than eight digits, and a path or
 * address must have a part that looks random. Entries of `values` need only four characters.
 */
export function chooseSecretValues(
  variables: Readonly<Record<string, string | undefined>>,
  values: readonly NamedValue[],
): NamedValue[] {
  const chosen: NamedValue[] = [];
  for (const { name, value } of values) if (value.trim().length >= 4) chosen.push({ name, value });
  for (const name in variables) {
    if (!looksSecret(name)) continue;
    const value = variables[name];
    if (value !== undefined && isWorthRedacting(value.trim())) chosen.push({ name, value });
  }
  return addLines(chosen);
}

/** Adds the lines of multi-line values that are long enough to be redacted on their own. */
function addLines(chosen: readonly NamedValue[]): NamedValue[] {
  const namesByValue = new Map<string, string>();
  const add = (value: string, name: string): void => {
    if (!namesByValue.has(value)) namesByValue.set(value, name);
  };
  for (const { name, value } of chosen) add(value.trim(), name);
  for (const { name, value } of chosen) {
    if (!value.includes("\n")) continue;
    for (const line of value.split("\n")) if (line.trim().length >= 16 && !isPemFrame(line)) add(line.trim(), name);
  }
  return Array.from(namesByValue, ([value, name]) => ({ name, value }));
}

/** Recognizes the first and last lines of a PEM block, which are not secret. */
function isPemFrame(line: string): boolean {
  return line.trimStart().startsWith("-----");
}

function isWorthRedacting(value: string): boolean {
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
