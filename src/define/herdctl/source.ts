import type { FindLine } from "../structured-text.ts";

/** Something that Drover does differently or not at all. */
export interface Note {
  file: string;
  line: number;
  key: string;
  message: string;
}

/** Keys of a herdctl file and their lines. */
export interface Source {
  file: string;
  keys: Record<string, unknown>;
  findLine: FindLine;
  /** Collects a note for each key that is not imported unchanged. */
  notes: Note[];
  /** Collects the names of used variables. */
  variables: Set<string>;
}

export function note({ file, findLine, notes }: Source, path: readonly PropertyKey[], message: string): void {
  notes.push({ file, line: findLine(path), key: path.map(String).join("."), message });
}

/** A part of a file, e.g. its `defaults`. */
export function selectPart(source: Source, path: readonly PropertyKey[], keys: Record<string, unknown>): Source {
  return { ...source, keys, findLine: (inner) => source.findLine([...path, ...inner]) };
}
