import { redactionMarkStart } from "../model/redaction-mark.ts";
import { byteClass, noMatch, needsMore, readLiteral, readRun, type Matcher } from "./matcher.ts";

const nameBytes = byteClass("A-Za-z0-9_.-");

/**
 * Keeps the marks of earlier redactions whole, even if they contain a secret's value, so that redacting twice changes
 * nothing.
 */
export const markMatcher: Matcher = {
  anchors: () => [redactionMarkStart.slice(0, 4)],
  startsInAnchor: true,
  match(text, at) {
    const name = readLiteral(text, at, redactionMarkStart);
    const close = name < 0 ? name : readRun(text, name, nameBytes, 1, 128);
    const end = close < 0 ? close : readLiteral(text, close, "]");
    if (end === needsMore) return { undecidedFrom: at };
    return end === noMatch ? undefined : { start: at, end, mark: undefined, rank: 0 };
  },
};
