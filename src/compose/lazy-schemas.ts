import type { SchemaChecker } from "../define/json-schema/checker.ts";

export interface LazySchemas {
  check(schema: object, value: unknown): Promise<{ path: string; message: string }[]>;
  stop(): Promise<void>;
}

/** A runner stays small: what checks results is loaded for the first agent that wants it. */
export function lazySchemas(): LazySchemas {
  let checker: Promise<SchemaChecker> | null = null;
  return {
    async check(schema, value) {
      const { checkOutput } = await import("../submit/parameters.ts");
      checker ??= import("../define/json-schema/checker.ts").then(({ openSchemaChecker }) => openSchemaChecker());
      return checkOutput(schema, value, await checker);
    },
    async stop() {
      await (await checker)?.stop();
    },
  };
}
