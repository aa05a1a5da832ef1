import { byteClass, failed, latin1, markOf, more, readLiteral, readRun, visibleExcept } from "./matcher.ts";
import type { ByteClass, Matcher } from "./matcher.ts";
import { isPlaceholder } from "./strong.ts";

/** Logins told by what stands around them rather than by a name. */
export function loginMatchers(): Matcher[] {
  return [userinfoMatcher, bearerMatcher, basicMatcher, botMatcher];
}

/** `scheme://user:password@`. */
const userinfoMatcher: Matcher = {
  anchors: () => Array.from(schemeEnds, (letter) => `${letter}://`),
  startsInAnchor: false,
  match(text, at) {
    const behindUser = readRun(text, at + 4, userBytes, 0, 128);
    if (behindUser < 0) return undefined;
    const start = readLiteral(text, behindUser, ":");
    if (start < 0) return undefined;
    const end = readRun(text, start, passwordBytes, 1, 1024);
    const behind = end < 0 ? end : readLiteral(text, end, "@");
    if (behind === more) return { undecidedFrom: start };
    if (behind === failed || isPlaceholder(latin1(text.bytes, start, end))) return undefined;
    return { start, end, mark: markOf("url-password"), rank: 1 };
  },
};

/** Last letters of schemes. */
const schemeEnds = "abcdefghijklmnopqrstuvwxyz345SPLB";
const userBytes = visibleExcept("/?#@:\"'`<>\\");
const passwordBytes = visibleExcept("/?#@\"'`<>\\");

const bearerMatcher = schemeMatcher({
  word: "bearer",
  bytes: byteClass("A-Za-z0-9._~+/=-"),
  mark: markOf("bearer-token"),
  accepts: (token) => /\d/.test(token) || token.length >= 40,
});

const basicMatcher = schemeMatcher({
  word: "basic",
  bytes: byteClass("A-Za-z0-9+/=_-"),
  mark: markOf("basic-login"),
  accepts: (token) => /^[\x20-\x7e]*:/.test(Buffer.from(token, "base64").toString("latin1")),
});

/** `accepts` must still hold for a longer text if it holds for a shorter one: redacting twice adds nothing. */
interface Scheme {
  word: string;
  bytes: ByteClass;
  mark: string;
  accepts: (token: string) => boolean;
}

/** `Bearer …` and `Basic …`, with or without the header's name before it. */
function schemeMatcher({ word, bytes, mark, accepts }: Scheme): Matcher {
  const small = word.slice(1);
  const large = small.toUpperCase();
  return {
    anchors: () => [small.slice(0, 4), large.slice(0, 4)],
    startsInAnchor: false,
    match(text, at) {
      const behindSmall = readLiteral(text, at, small);
      const behindWord = behindSmall === failed ? readLiteral(text, at, large) : behindSmall;
      const start = behindWord < 0 ? behindWord : readRun(text, behindWord, blanks, 1, 4);
      if (start < 0) return undefined;
      const end = readRun(text, start, bytes, 8, 4096);
      if (end === more) return { undecidedFrom: start };
      if (end === failed || !accepts(latin1(text.bytes, start, end))) return undefined;
      return { start, end, mark, rank: 1 };
    },
  };
}

const blanks = byteClass(" \t");

/** A Telegram bot's `123456789:AA…`: the number stays, it is the bot's public id. */
const botMatcher: Matcher = {
  anchors: () => [":AAE", ":AAF", ":AAG", ":AAH"],
  startsInAnchor: true,
  match(text, at) {
    const digits = latin1(text.bytes, Math.max(0, at - 10), at);
    if (!/\d{8}$/.test(digits)) return undefined;
    const end = readRun(text, at + 1, botBytes, 33, 64);
    if (end === more) return { undecidedFrom: at };
    return end === failed ? undefined : { start: at + 1, end, mark: markOf("bot-token"), rank: 1 };
  },
};

const botBytes = byteClass("A-Za-z0-9_-");
