/** A seeded random generator: the same seed gives the same sequence. */
export interface Dice {
  next(): number;
  chance(probability: number): boolean;
  int(below: number): number;
  pick<T>(from: readonly T[]): T;
}

export function dice(seed: number): Dice {
  let state = seed | 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const int = (below: number): number => Math.floor(next() * below);
  return { next, int, chance: (probability) => next() < probability, pick: (from) => from[int(from.length)]! };
}

/** A value that roughly matches a JSON Schema, enough to pass basic validation. */
export function createFromSchema(
  schema: unknown,
  named: Readonly<Record<string, unknown>>,
  random: Dice,
  depth = 0,
): unknown {
  const s = (schema ?? {}) as Record<string, unknown>; // A schema that is not an object accepts anything.
  if (typeof s["$ref"] === "string") return createFromSchema(named[s["$ref"].split("/").at(-1)!], named, random, depth);
  if ("const" in s) return s["const"];
  if (Array.isArray(s["enum"])) return random.pick(s["enum"]);
  const choices = s["anyOf"] ?? s["oneOf"];
  if (Array.isArray(choices)) return createFromSchema(random.pick(choices), named, random, depth);
  const type = Array.isArray(s["type"]) ? random.pick(s["type"] as string[]) : s["type"];
  switch (type) {
    case "object":
      return createObject(s, named, random, depth);
    case "array":
      if (Array.isArray(s["prefixItems"]))
        return s["prefixItems"].map((itemSchema) => createFromSchema(itemSchema, named, random, depth + 1));
      return Array.from({ length: depth > 4 ? 0 : random.int(3) }, () =>
        createFromSchema(s["items"], named, random, depth + 1),
      );
    case "string":
      return s["format"] === "date-time"
        ? "2026-01-01T00:00:00.000Z"
        : random.pick(["echo", "a", "x".repeat(20), "Grüße", "2026-01-01T00:00:00Z"]);
    case "integer":
    case "number":
      return random.pick([0, 1, 2, 10, 50]);
    case "boolean":
      return random.chance(0.5);
    case "null":
      return null;
    default:
      return random.pick([null, 1, "x", {}, []]);
  }
}

function createObject(
  s: Record<string, unknown>,
  named: Readonly<Record<string, unknown>>,
  random: Dice,
  depth: number,
): Record<string, unknown> {
  const required = (s["required"] as string[] | undefined) ?? [];
  const entries = Object.entries((s["properties"] as Record<string, unknown> | undefined) ?? {})
    .filter(([name]) => required.includes(name) || random.chance(depth > 4 ? 0 : 0.3))
    .map(([name, property]) => [name, createFromSchema(property, named, random, depth + 1)]);
  return Object.fromEntries(entries);
}

/** Replaces `times` parts of a value with hostile ones. */
export function spoil(value: unknown, times: number, random: Dice): unknown {
  let spoilt = value;
  for (let time = 0; time < times; time += 1) spoilt = spoilOnce(spoilt, random);
  return spoilt;
}

function spoilOnce(value: unknown, random: Dice): unknown {
  if (typeof value !== "object" || value === null || random.chance(0.2)) return createHostileValue(random);
  const keys = Object.keys(value);
  if (keys.length === 0 || random.chance(0.15))
    return Array.isArray(value)
      ? [...value, createHostileValue(random)]
      : { ...value, [String(createHostileValue(random))]: createHostileValue(random) };
  const key = random.pick(keys);
  if (random.chance(0.15)) return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
  const inner: unknown = Reflect.get(value, key);
  if (Array.isArray(value))
    return value.map((item: unknown, index) => (String(index) === key ? spoilOnce(inner, random) : item));
  return { ...value, [key]: spoilOnce(inner, random) };
}

export function createHostileValue(random: Dice): unknown {
  return random.pick<unknown>([
    null,
    true,
    0,
    -1,
    1.5,
    1e308,
    -0,
    Number.MAX_SAFE_INTEGER + 2,
    "",
    " ",
    "\0",
    "\ud800",
    "\u202e",
    "x".repeat(10_000),
    "../../etc/passwd",
    "%00",
    "'; drop table runs; --",
    "<script>alert(1)</script>",
    "${HOME}",
    "$(id)",
    "__proto__",
    "constructor",
    "null",
    "NaN",
    "1e9",
    "-1",
    "0x10",
    "echo@",
    "@",
    "\r\nx: y",
    "😀",
    [],
    {},
    [[]],
    [null],
    { a: { b: { c: 1 } } },
    { $ref: "#" },
    { type: "string", pattern: "(a+)+$" },
    "2026-13-45T99:99:99Z",
    "9".repeat(400),
    ["a", 1, null],
    { "": "" },
  ]);
}
