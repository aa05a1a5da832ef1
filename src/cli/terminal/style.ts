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
  const code = (start: number, end: number) => (text: string) =>
    isColoured && text !== "" ? `\u001b[${start}m${text}\u001b[${end}m` : text;
  return {
    bold: code(1, 22),
    dim: code(2, 22),
    red: code(31, 39),
    green: code(32, 39),
    yellow: code(33, 39),
    cyan: code(36, 39),
  };
}
