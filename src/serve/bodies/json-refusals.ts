import { defaultJsonLimits, type JsonLimits } from "../../model/json-limits.ts";
import { Refusal } from "../refusal.ts";

type Path = readonly (string | number)[];

const maxQuotedLength = 100;

const forbidden = new Set(["__proto__", "constructor", "prototype"]);

export function isForbidden(key: string): boolean {
  return forbidden.has(key);
}

export function forbiddenKey(path: Path): Refusal {
  return new Refusal(400, "DROVER-API-005", `The key ${path.at(-1)} is not allowed.`, {
    faults: [{ path: formatPath(path), message: "forbidden key" }],
  });
}

export function inexactNumber(path: Path, text: string): Refusal {
  // The number can be as long as the body.
  const number = text.length > maxQuotedLength ? `${text.slice(0, maxQuotedLength)}...` : text;
  return new Refusal(
    400,
    "DROVER-PAR-005",
    `${formatPath(path)}: JavaScript cannot represent the number ${number} exactly.`,
    {
      faults: [{ path: formatPath(path), message: `${number} cannot be represented exactly` }],
      next: "Send it as a string.",
    },
  );
}

export function tooComplex(excess: keyof JsonLimits): Refusal {
  if (excess === "depth")
    return new Refusal(400, "DROVER-API-004", `The JSON is nested more than ${defaultJsonLimits.depth} levels deep.`, {
      faults: [{ path: "body", message: `at most ${defaultJsonLimits.depth} levels` }],
    });
  const [max, unit] = [defaultJsonLimits[excess], excess === "names" ? "distinct member names" : "values"];
  return new Refusal(413, "DROVER-API-003", `The body has more than ${max} ${unit}.`, {
    faults: [{ path: "body", message: `at most ${max} ${unit}` }],
  });
}

export function notUtf8(): Refusal {
  return new Refusal(400, "DROVER-API-001", "The body is not UTF-8.", {
    faults: [{ path: "body", message: "not UTF-8" }],
  });
}

function formatPath(path: Path): string {
  return `body${path.map((key) => (typeof key === "number" ? `[${key}]` : `.${key}`)).join("")}`;
}
