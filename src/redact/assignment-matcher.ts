import {
  byteClass,
  complement,
  noMatch,
  hasByteOutside,
  toLatin1,
  createMark,
  needsMore,
  readRun,
  visibleExcept,
} from "./matcher.ts";
import type { Matcher, Verdict, View } from "./matcher.ts";
import { isLikelySecret, findSensitiveWord } from "./secret-heuristics.ts";

const nameBytes = byteClass("A-Za-z0-9_.-");
const nameEndBytes = byteClass("A-Za-z0-9_-");
const blanks = byteClass(" \t");
const letters = byteClass("A-Za-z");
const bareValueBytes = visibleExcept("\"'`,;&|()<>{}[]\\");
const quotedValueBytes = visibleExcept("\"'`\\");
const maxNameLength = 64;

/** Matches values of sensitive names: `password=…`, `"api_key": "…"`, `--token …`, `Authorization: Scheme …`. */
export const assignmentMatcher: Matcher = {
  anchors: () => anchors,
  startsInAnchor: false,
  match(text, at) {
    const afterName = readRun(text, at, nameEndBytes, 1, maxNameLength);
    if (afterName < 0) return undefined;
    const name = toLatin1(text.bytes, findNameStart(text, at), afterName);
    const afterSign = readSign(text, afterName, name.includes("--"));
    if (afterSign < 0) return undefined;
    const word = findSensitiveWord(name);
    if (word === undefined) return undefined;
    const afterQuote = readQuote(text, afterSign);
    if (afterQuote < 0) return undefined;
    const start = word === "authorization" ? readScheme(text, afterQuote) : afterQuote;
    if (start < 0) return start === needsMore ? { undecidedFrom: afterQuote } : undefined;
    return readValue(text, start, afterQuote > afterSign, word);
  },
};

/** Four bytes of each sensitive word, in lower and upper case. */
const anchors = (
  "sswo SSWO sswd SSWD phra PHRA cret CRET oken OKEN rede REDE utho UTHO _pas _PAS -pas _aut _AUT pwd= Pwd= " +
  "_key _KEY -key -Key -KEY .key ikey iKey IKEY iKEY skey sKey SKEY tKey tkey TKEY eKey ekey EKEY gKey gkey GKEY nKey nkey NKEY hKey hkey HKEY rKey rkey RKEY"
).split(" ");

function findNameStart(text: View, at: number): number {
  let start = at;
  while (start > 0 && at - start < maxNameLength && nameBytes[text.bytes[start - 1]!] === 1) start--;
  return start;
}

/**
 * Reads `:`, `=`, `=>`, `:=` or `==`, with or without a closing quote before it. A flag's value may follow a space
 * instead.
 */
function readSign(text: View, at: number, isFlag: boolean): number {
  const afterQuote = readQuote(text, at);
  if (afterQuote < 0) return afterQuote;
  const afterBlanks = readRun(text, afterQuote, blanks, 0, 8);
  if (afterBlanks < 0) return afterBlanks;
  const sign = readRun(text, afterBlanks, signs, 1, 1);
  if (sign === noMatch) return isFlag && afterBlanks > at ? afterBlanks : noMatch;
  const afterSign = sign === needsMore ? needsMore : readRun(text, sign, secondSigns, 0, 1);
  return afterSign === needsMore ? needsMore : readRun(text, afterSign, blanks, 0, 8);
}

const signs = byteClass(":=");
const secondSigns = byteClass("=>");

/** Reads a quote, which may be escaped once or twice. Returns `at` if no quote is there. */
function readQuote(text: View, at: number): number {
  const afterSlashes = readRun(text, at, backslashes, 0, 3);
  if (afterSlashes < 0) return afterSlashes;
  const quote = readRun(text, afterSlashes, quotes, 1, 1);
  return quote === noMatch ? at : quote;
}

const backslashes = byteClass("\\");
const quotes = byteClass("\"'`");

/** Reads a scheme such as `Bearer`, `token` or `ApiKey` and the space after it. Returns `at` if no scheme is there. */
function readScheme(text: View, at: number): number {
  const afterWord = readRun(text, at, letters, 1, 20);
  if (afterWord < 0) return afterWord === needsMore ? needsMore : at;
  const blank = readRun(text, afterWord, blanks, 1, 4);
  return blank === noMatch ? at : blank;
}

function readValue(text: View, start: number, isQuoted: boolean, word: string): Verdict {
  const end = readRun(text, start, isQuoted ? quotedValueBytes : bareValueBytes, 6, 4096);
  if (end === needsMore) return { undecidedFrom: start };
  if (end === noMatch || !isLikelySecretAt(text, start, end)) return undefined;
  return { start, end, mark: createMark(word), rank: 2 };
}

/**
 * Checks the value like `isLikelySecret`, but reads only the head of a long value, because text can contain many of
 * them.
 */
function isLikelySecretAt(text: View, start: number, end: number): boolean {
  if (end - start <= headLength) return isLikelySecret(toLatin1(text.bytes, start, end));
  if (!hasByteOutside(text, start, end, withoutSigns)) return false;
  const head = toLatin1(text.bytes, start, start + headLength);
  // The head alone may not distinguish an address, a path, a placeholder, a number or symbols from a secret.
  const isConclusive = /[^a-z_.~/:{-]/.test(head) && /[^\d.,:_-]/.test(head) && /[^!@#$%^*+?=]/.test(head);
  return isLikelySecret(isConclusive ? `${head}0` : toLatin1(text.bytes, start, end));
}

const headLength = 64;
const withoutSigns = complement(byteClass("0-9!@#$%^*+?"));
