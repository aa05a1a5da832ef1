/** Request bodies are foreign data: looked into without trust. */
export type Fields = Readonly<Record<string, unknown>>;

export function fieldsOf(value: unknown): Fields {
  // an object's fields are unknown each
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.map(fieldsOf) : [];
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function parsedOr(text: string): Fields {
  try {
    return fieldsOf(JSON.parse(text));
  } catch {
    return { text };
  }
}

/** A few pieces, so that every streamed text really comes in several chunks. */
export function piecesOf(text: string): string[] {
  // never half of a surrogate pair
  const letters = Array.from(text);
  const size = Math.max(1, Math.ceil(letters.length / 4));
  return Array.from({ length: Math.ceil(letters.length / size) }, (_, at) =>
    letters.slice(at * size, (at + 1) * size).join(""),
  );
}

/** The JSON of a tool's input, or as much of it as the script lets through. */
export function inputText({ input, cut_input }: { input: unknown; cut_input?: number }): string {
  return JSON.stringify(input).slice(0, cut_input);
}
