/** Clients' output is not trusted: a field of the wrong type reads as empty. */
export type Fields = Readonly<Record<string, unknown>>;

export function toFields(value: unknown): Fields {
  // Any object has readable fields, all of type unknown.
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

export function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function toText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function toNumber(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}
