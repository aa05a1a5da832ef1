import { byteClass, noMatch, toLatin1, createMark, needsMore, readLiteral, readRun, visibleExcept } from "./matcher.ts";
import type { ByteClass, Matcher } from "./matcher.ts";
import { isPlaceholder } from "./secret-heuristics.ts";

/** Matches logins by their context instead of by a name. */
export function createLoginMatchers(): Matcher[] {
  return [userinfoMatcher, bearerMatcher, basicMatcher, botMatcher];
}

/** Matches `scheme://user:password@`. */
const userinfoMatcher: Matcher = {
  anchors: () => Array.from(schemeEnds, (letter) => `${letter}://`),
  startsInAnchor: false,
  match(text, at) {
    const afterUser = readRun(text, at + 4, userBytes, 0, 128);
    if (afterUser < 0) return undefined;
    const start = readLiteral(text, afterUser, ":");
    if (start < 0) return undefined;
    const end = readRun(text, start, passwordBytes, 1, 1024);
    const afterSign = end < 0 ? end : readLiteral(text, end, "@");
    if (afterSign === needsMore) return { undecidedFrom: start };
    if (afterSign === noMatch || isPlaceholder(toLatin1(text.bytes, start, end))) return undefined;
    return { start, end, mark: createMark("url-password"), rank: 1 };
  },
};

/** The last letters of URL schemes. */
const schemeEnds = "abcdefghijklmnopqrstuvwxyz345SPLB";
const userBytes = visibleExcept("/?#@:\"'`<>\\");
const passwordBytes = visibleExcept("/?#@\"'`<>\\");

const bearerMatcher = createSchemeMatcher({
  word: "bearer",
  bytes: byteClass("A-Za-z0-9._~+/=-"),
  mark: createMark("bearer-token"),
  accepts: (token) => /\d/.test(token) || token.length >= 40,
});

const basicMatcher = createSchemeMatcher({
  word: "basic",
  bytes: byteClass("A-Za-z0-9+/=_-"),
  mark: createMark("basic-login"),
  accepts: (token) => /^[\x20-\x7e]*:/.test(Buffer.from(token, "base64").toString("latin1")),
});

/**
 * If `accepts` returns true for some text, it must do so for every extension of that text, so that redacting twice changes
 * nothing.
 */
interface Scheme {
  word: string;
  bytes: ByteClass;
  mark: string;
  accepts: (token: string) => boolean;
}

/** Matches `Bearer …` and `Basic …`, with or without the header's name. */
function createSchemeMatcher({ word, bytes, mark, accepts }: Scheme): Matcher {
  const lower = word.slice(1);
  const upper = lower.toUpperCase();
  return {
    anchors: () => [lower.slice(0, 4), upper.slice(0, 4)],
    startsInAnchor: false,
    match(text, at) {
      const afterLower = readLiteral(text, at, lower);
      const afterWord = afterLower === noMatch ? readLiteral(text, at, upper) : afterLower;
      const start = afterWord < 0 ? afterWord : readRun(text, afterWord, blanks, 1, 4);
      if (start < 0) return undefined;
      const end = readRun(text, start, bytes, 8, 4096);
      if (end === needsMore) return { undecidedFrom: start };
      if (end === noMatch || !accepts(toLatin1(text.bytes, start, end))) return undefined;
      return { start, end, mark, rank: 1 };
    },
  };
}

const blanks = byteClass(" \t");

/** Matches a Telegram bot's `123456789:AA…`. The number stays, because it is the bot's public id. */
const botMatcher: Matcher = {
  anchors: () => [":AAE", ":AAF", ":AAG", ":AAH"],
  startsInAnchor: true,
  match(text, at) {
    const digits = toLatin1(text.bytes, Math.max(0, at - 10), at);
    if (!/\d{8}$/.test(digits)) return undefined;
    const end = readRun(text, at + 1, botBytes, 33, 64);
    if (end === needsMore) return { undecidedFrom: at };
    return end === noMatch ? undefined : { start: at + 1, end, mark: createMark("bot-token"), rank: 1 };
  },
};

const botBytes = byteClass("A-Za-z0-9_-");
