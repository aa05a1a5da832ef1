import { isTerminal } from "../io.ts";
import type { Environment } from "../../model/environment.ts";

/** Formats text with colours. Without a terminal the text stays unchanged. */
export interface Style {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  cyan(text: string): string;
}

export function createStyleFor(fd: 1 | 2, env: Environment): Style {
  return createStyle(isTerminal(fd) && !env["NO_COLOR"] && env["TERM"] !== "dumb");
}

export function createStyle(isColoured: boolean): Style {
  const createPainter = (start: number, end: number) => (text: string) =>
    isColoured && text !== "" ? `\u001b[${start}m${text}\u001b[${end}m` : text;
  return {
    bold: createPainter(1, 22),
    dim: createPainter(2, 22),
    red: createPainter(31, 39),
    green: createPainter(32, 39),
    yellow: createPainter(33, 39),
    cyan: createPainter(36, 39),
  };
}
