import type { Work } from "./query.ts";
import type { SearchStatements } from "./search/statements.ts";

/** One database with Drover's schema. Each method takes a function that creates the work, because a retry starts over. */
export interface Engine {
  readonly kind: "sqlite" | "postgres";
  /** For messages: the file, or the address without its password. */
  readonly name: string;
  readonly search: SearchStatements;
  read<T>(work: () => Work<T>): Promise<T>;
  /** For pages of up to a megabyte: short reads do not queue behind them. */
  readPage<T>(work: () => Work<T>): Promise<T>;
  /** Like `read`, with one consistent snapshot for all statements. */
  snapshot<T>(work: () => Work<T>): Promise<T>;
  /** One exclusive transaction, for work that is not a store operation. It commits completely or not at all. */
  write<T>(work: () => Work<T>): Promise<T>;
}
