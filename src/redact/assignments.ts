import { byteClass, complement, failed, hasOther, latin1, markOf, more, readRun, visibleExcept } from "./matcher.ts";
import type { Matcher, Verdict, View } from "./matcher.ts";
import { isStrong, tellingWord } from "./strong.ts";

const nameBytes = byteClass("A-Za-z0-9_.-");
const nameEnd = byteClass("A-Za-z0-9_-");
const blanks = byteClass(" \t");
const letters = byteClass("A-Za-z");
const bareValue = visibleExcept("\"'`,;&|()<>{}[]\\");
const quotedValue = visibleExcept("\"'`\\");
const longestName = 64;

/** `password=…`, `"api_key": "…"`, `--token …`, `Authorization: Scheme …`: what follows a telling name. */
export const assignmentMatcher: Matcher = {
  anchors: () => anchors,
  startsInAnchor: false,
  match(text, at) {
    const behindName = readRun(text, at, nameEnd, 1, longestName);
    if (behindName < 0) return undefined;
    const name = latin1(text.bytes, startOfName(text, at), behindName);
    const behindSign = readSign(text, behindName, name.includes("--"));
    if (behindSign < 0) return undefined;
    const word = tellingWord(name);
    if (word === undefined) return undefined;
    const behindQuote = readQuote(text, behindSign);
    if (behindQuote < 0) return undefined;
    const start = word === "authorization" ? readScheme(text, behindQuote) : behindQuote;
    if (start < 0) return start === more ? { undecidedFrom: behindQuote } : undefined;
    return readValue(text, start, behindQuote > behindSign, word);
  },
};

/** Four bytes of each telling word, as it is written small and large. */
const anchors = (
  "sswo SSWO sswd SSWD phra PHRA cret CRET oken OKEN rede REDE utho UTHO _pas _PAS -pas _aut _AUT pwd= Pwd= " +
  "_key _KEY -key -Key -KEY .key ikey iKey IKEY iKEY skey sKey SKEY tKey tkey TKEY eKey ekey EKEY gKey gkey GKEY nKey nkey NKEY hKey hkey HKEY rKey rkey RKEY"
).split(" ");

function startOfName(text: View, at: number): number {
  let start = at;
  while (start > 0 && at - start < longestName && nameBytes[text.bytes[start - 1]!] === 1) start--;
  return start;
}

/** `:`, `=`, `=>`, `:=`, `==`, after a closing quote perhaps; a flag's value may follow a blank. */
function readSign(text: View, at: number, isFlag: boolean): number {
  const behindQuote = readQuote(text, at);
  if (behindQuote < 0) return behindQuote;
  const behindBlanks = readRun(text, behindQuote, blanks, 0, 8);
  if (behindBlanks < 0) return behindBlanks;
  const sign = readRun(text, behindBlanks, signs, 1, 1);
  if (sign === failed) return isFlag && behindBlanks > at ? behindBlanks : failed;
  const behindSign = sign === more ? more : readRun(text, sign, secondSigns, 0, 1);
  return behindSign === more ? more : readRun(text, behindSign, blanks, 0, 8);
}

const signs = byteClass(":=");
const secondSigns = byteClass("=>");

/** Quotes may be escaped, once or twice. Without one, `at` again. */
function readQuote(text: View, at: number): number {
  const behindSlashes = readRun(text, at, backslashes, 0, 3);
  if (behindSlashes < 0) return behindSlashes;
  const quote = readRun(text, behindSlashes, quotes, 1, 1);
  return quote === failed ? at : quote;
}

const backslashes = byteClass("\\");
const quotes = byteClass("\"'`");

/** `Bearer`, `token`, `ApiKey` and the like, with the blank behind it; without one, `at` again. */
function readScheme(text: View, at: number): number {
  const behindWord = readRun(text, at, letters, 1, 20);
  if (behindWord < 0) return behindWord === more ? more : at;
  const blank = readRun(text, behindWord, blanks, 1, 4);
  return blank === failed ? at : blank;
}

function readValue(text: View, start: number, quoted: boolean, word: string): Verdict {
  const end = readRun(text, start, quoted ? quotedValue : bareValue, 6, 4096);
  if (end === more) return { undecidedFrom: start };
  if (end === failed || !isStrongAt(text, start, end)) return undefined;
  return { start, end, mark: markOf(word), rank: 2 };
}

/** What `isStrong` says. Of a long value it reads the head: a text of many names has a long value behind each of them. */
function isStrongAt(text: View, start: number, end: number): boolean {
  if (end - start <= headLength) return isStrong(latin1(text.bytes, start, end));
  if (!hasOther(text, start, end, withoutSigns)) return false;
  const head = latin1(text.bytes, start, start + headLength);
  // where the head alone may not tell an address, a path, a placeholder, a number or signs from a secret
  const isTelling = /[^a-z_.~/:{-]/.test(head) && /[^\d.,:_-]/.test(head) && /[^!@#$%^*+?=]/.test(head);
  return isStrong(isTelling ? `${head}0` : latin1(text.bytes, start, end));
}

const headLength = 64;
const withoutSigns = complement(byteClass("0-9!@#$%^*+?"));
