import type { SchemaChecker } from "../define/json-schema/checker.ts";

export interface LazySchemas {
  check(schema: object, value: unknown): Promise<{ path: string; message: string }[]>;
  stop(): Promise<void>;
}

/** Loads the schema checker on first use, so that a runner whose agents need none stays small. */
export function createLazySchemas(): LazySchemas {
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
