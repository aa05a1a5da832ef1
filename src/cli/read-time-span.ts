import { usage } from "./options.ts";

const units = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** 90s, 15m, 12h, 30d, 4w: milliseconds. Anything else is refused by the option's name. */
export function readTimeSpan(
  text: string,
  option: string,
  command: string,
  most: { text: string; ms: number },
): number {
  const [, number = "", unit = ""] = /^(\d+(?:\.\d+)?)([smhdw])$/.exec(text) ?? [];
  // the pattern knows no other letter
  const ms = Number(number) * units[unit as keyof typeof units];
  if (ms > 0 && ms <= most.ms) return ms;
  const fault = number === "" ? "is not a time" : ms > 0 ? `is more than ${most.text}` : "is no time at all";
  throw usage(`--${option} ${text} ${fault}: say for example 90s, 15m, 12h, 30d or 4w.`, command, `--${option}`);
}
