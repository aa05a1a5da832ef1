import type { Work } from "./query.ts";
import type { SearchStatements } from "./search/statements.ts";

/** One database with our schema in it. Each call makes its work anew, as it may have to begin again. */
export interface Engine {
  readonly kind: "sqlite" | "postgres";
  /** For people: the file, or the address without its password. */
  readonly name: string;
  readonly search: SearchStatements;
  read<T>(work: () => Work<T>): Promise<T>;
  /** All of it sees the database as of one moment. */
  snapshot<T>(work: () => Work<T>): Promise<T>;
  /** One transaction while nobody else writes, for work that is not an operation. All of it is stored, or nothing. */
  write<T>(work: () => Work<T>): Promise<T>;
}
