/** Request bodies are untrusted, so every field is checked before use. */
export type Fields = Readonly<Record<string, unknown>>;

export function toFields(value: unknown): Fields {
  // Every field of an object is unknown.
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function toFieldsList(value: unknown): Fields[] {
  return Array.isArray(value) ? value.map(toFields) : [];
}

export function toText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function parseOrNull(text: string): Fields {
  try {
    return toFields(JSON.parse(text));
  } catch {
    return { text };
  }
}

/** Splits text into a few pieces, so that every streamed text arrives in several chunks. */
export function splitIntoPieces(text: string): string[] {
  // Do not split surrogate pairs.
  const letters = Array.from(text);
  const size = Math.max(1, Math.ceil(letters.length / 4));
  return Array.from({ length: Math.ceil(letters.length / size) }, (_, index) =>
    letters.slice(index * size, (index + 1) * size).join(""),
  );
}

/** The JSON of a tool's input, cut off if the script says so. */
export function serializeInput({ input, cut_input }: { input: unknown; cut_input?: number }): string {
  return JSON.stringify(input).slice(0, cut_input);
}
