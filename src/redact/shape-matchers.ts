import { canStartToken } from "./token-boundary.ts";
import {
  byteClass,
  complement,
  noMatch,
  hasByteOutside,
  createMark,
  needsMore,
  readLiteral,
  readRun,
  type ByteClass,
  type Matcher,
  type View,
} from "./matcher.ts";

/** A token that is recognized by its prefix. */
interface Shape {
  name: string;
  prefixes: readonly string[];
  /** The literals and runs of bytes that follow the prefix. */
  rest: readonly (string | Run)[];
  /** Bytes that must not come directly before the token. */
  notAfter?: ByteClass;
  /** If this returns true for some text, it must do so for every extension of that text. */
  accepts?: (text: View, at: number, end: number) => boolean;
}

interface Run {
  bytes: ByteClass;
  min: number;
  max: number;
}

const alphanumeric = byteClass("A-Za-z0-9");
const alphanumericOrDash = byteClass("A-Za-z0-9-");
const digit = byteClass("0-9");
const word = byteClass("A-Za-z0-9_");
const wordOrDash = byteClass("A-Za-z0-9_-");
const wordDashOrDot = byteClass("A-Za-z0-9_.-");
const capitalOrDigit = byteClass("A-Z0-9");

const run = (bytes: ByteClass, min: number, max = 4096): Run => ({ bytes, min, max });

const shapes: readonly Shape[] = [
  { name: "drover-token", prefixes: ["drv_", "drve_", "drvl_", "drvb_"], rest: [run(alphanumeric, 32)] },
  {
    name: "drover-token",
    prefixes: ["drva_"],
    rest: [run(alphanumericOrDash, 1, 64), ".", run(digit, 1, 7), ".", run(alphanumeric, 64, 64)],
  },
  { name: "github-token", prefixes: ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], rest: [run(word, 36)] },
  { name: "github-token", prefixes: ["github_pat_"], rest: [run(word, 22)] },
  {
    name: "gitlab-token",
    prefixes: ["glpat-", "gldt-", "glrt-", "glptt-", "glcbt-"],
    rest: [run(wordDashOrDot, 20)],
    accepts: hasDigit,
  },
  { name: "anthropic-key", prefixes: ["sk-ant-"], rest: [run(wordOrDash, 20)], accepts: hasDigit },
  { name: "openai-key", prefixes: ["sk-"], rest: [run(wordOrDash, 20)], notAfter: wordOrDash, accepts: isMixed },
  { name: "google-key", prefixes: ["AIza"], rest: [run(wordOrDash, 35)] },
  { name: "google-token", prefixes: ["ya29."], rest: [run(wordDashOrDot, 20)] },
  { name: "aws-key-id", prefixes: ["AKIA", "ASIA"], rest: [run(capitalOrDigit, 16)] },
  { name: "slack-token", prefixes: listSlackPrefixes(), rest: [run(wordOrDash, 10)], accepts: hasDigit },
  { name: "npm-token", prefixes: ["npm_"], rest: [run(alphanumeric, 36)] },
  { name: "pypi-token", prefixes: ["pypi-"], rest: [run(wordOrDash, 50)], accepts: isMixed },
  {
    name: "stripe-key",
    prefixes: ["sk_live_", "rk_live_", "sk_test_", "rk_test_"],
    rest: [run(alphanumeric, 16)],
    accepts: hasDigit,
  },
  { name: "groq-key", prefixes: ["gsk_"], rest: [run(alphanumeric, 40)] },
  { name: "docker-token", prefixes: ["dckr_pat_"], rest: [run(wordOrDash, 20)] },
  { name: "vault-token", prefixes: ["hvs."], rest: [run(wordOrDash, 24)], accepts: hasDigit },
  {
    name: "jwt",
    prefixes: ["eyJ"],
    rest: [run(wordOrDash, 10), ".", "ey", run(wordOrDash, 10, 8192), ".", run(wordOrDash, 0)],
    notAfter: wordOrDash,
  },
];

export function createShapeMatchers(): Matcher[] {
  return shapes.map(createShapeMatcher);
}

function createShapeMatcher(shape: Shape): Matcher {
  const mark = createMark(shape.name);
  return {
    anchors: () => shape.prefixes.flatMap(listAnchors),
    startsInAnchor: true,
    match(text, at) {
      if (!canStartToken(text, at, shape.notAfter ?? alphanumeric)) return undefined;
      let end: number = noMatch;
      for (const prefix of shape.prefixes) {
        end = readLiteral(text, at, prefix);
        if (end !== noMatch) break;
      }
      for (const part of shape.rest) {
        if (end < 0) break;
        end =
          typeof part === "string" ? readLiteral(text, end, part) : readRun(text, end, part.bytes, part.min, part.max);
      }
      if (end === needsMore) return { undecidedFrom: at };
      if (end === noMatch || shape.accepts?.(text, at, end) === false) return undefined;
      return { start: at, end, mark, rank: 1 };
    },
  };
}

/** Extends a prefix of three bytes by every character that may follow it, because anchors have four bytes. */
function listAnchors(prefix: string): string[] {
  if (prefix.length >= 4) return [prefix.slice(0, 4)];
  return Array.from(prefix === "eyJ" ? jsonKeyStarts : lettersAndDigits, (next) => prefix + next);
}

const lettersAndDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/** The next character in base64 of a JSON object whose first key starts with a lower-case letter. */
const jsonKeyStarts = "hijklmnopqrstuvwxyz0123456";

function listSlackPrefixes(): string[] {
  return [...Array.from("abcdeoprs", (kind) => `xox${kind}-`), "xapp-", "xoxe."];
}

function hasDigit(text: View, at: number, end: number): boolean {
  return hasByteOutside(text, at, end, notDigit);
}

/** Requires digits, capitals and lower-case letters: `sk-spinner-container-large` is a style, not a key. */
function isMixed(text: View, at: number, end: number): boolean {
  return (
    hasDigit(text, at, end) &&
    hasByteOutside(text, at, end, notCapital) &&
    hasByteOutside(text, at + 3, end, notLowerCase)
  );
}

const notDigit = complement(digit);
const notCapital = complement(byteClass("A-Z"));
const notLowerCase = complement(byteClass("a-z"));
