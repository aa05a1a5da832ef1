import { isMainThread, parentPort, workerData } from "node:worker_threads";
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { escapePointer } from "../../model/json-pointer.ts";
import { suggest } from "../../model/suggest.ts";
import type { SchemaFault } from "./limits.ts";
import { type CheckRequest, type Report, workerName } from "./protocol.ts";
import { getCurrentThread } from "./thread-time.ts";

/** Compiles and applies users' JSON Schemas in the current thread. */
export interface SchemaEngine {
  /** Compiles the schema and returns its faults. */
  compile(schemaText: string): SchemaFault[];
  /** Returns the faults of the value, or those of the schema if it cannot be compiled. */
  check(schemaText: string, value: unknown): SchemaFault[];
  /**
   * Also validates against the meta-schema, so that a fault names the place of the mistake. Loading it takes 70 ms once.
   */
  checkSchema(schemaText: string): SchemaFault[];
}

const maxCompiled = 200;
const maxFaults = 50;

export function createSchemaEngine(): SchemaEngine {
  const compiled = new Map<string, ValidateFunction | SchemaFault[]>();
  const metaSchemas = new Map<boolean, Ajv | Ajv2020>();
  const getCompiled = (schemaText: string): ValidateFunction | SchemaFault[] => {
    const compiledOrFaults = compiled.get(schemaText) ?? compileText(schemaText);
    compiled.delete(schemaText);
    compiled.set(schemaText, compiledOrFaults); // Keeps the map in order of last use.
    if (compiled.size > maxCompiled) compiled.delete(compiled.keys().next().value!);
    return compiledOrFaults;
  };
  return {
    compile(schemaText) {
      const compiledOrFaults = getCompiled(schemaText);
      return Array.isArray(compiledOrFaults) ? compiledOrFaults : [];
    },
    check(schemaText, value) {
      const compiledOrFaults = getCompiled(schemaText);
      return Array.isArray(compiledOrFaults) ? compiledOrFaults : applyValidator(compiledOrFaults, value);
    },
    checkSchema(schemaText) {
      const { schema, isDraft07 } = readSchema(schemaText);
      const metaSchema = metaSchemas.get(isDraft07) ?? (isDraft07 ? new Ajv(options) : new Ajv2020(options));
      metaSchemas.set(isDraft07, metaSchema);
      if (!metaSchema.validateSchema(schema)) return toUniqueFaults(metaSchema.errors ?? []);
      return this.compile(schemaText);
    },
  };
}

/**
 * People write schemas by hand, so a misspelt keyword is a fault. A type and its keywords may be declared in different
 * subschemas.
 */
const options = {
  allErrors: true,
  strictTypes: false,
  strictTuples: false,
  strictRequired: false,
  verbose: true,
  logger: false,
} as const satisfies Options;

/** Each schema gets its own instance, so the `$id`s and references of two schemas cannot collide. */
function compileText(schemaText: string): ValidateFunction | SchemaFault[] {
  const { schema, isDraft07, extensions } = readSchema(schemaText);
  const bareOptions = { ...options, meta: false, validateSchema: false } as const;
  const ajv = isDraft07 ? new Ajv(bareOptions) : new Ajv2020(bareOptions);
  // This is a CommonJS module. Depending on the loader, the function is the module or its default export.
  (typeof formats === "function" ? formats : (formats as { default: typeof formats }).default)(ajv);
  try {
    ajv.addVocabulary([...extensions]);
    return ajv.compile(schema);
  } catch (error) {
    // ajv throws an Error if it cannot compile a schema, even on a stack overflow.
    if (error instanceof Error)
      return [{ path: "", message: `is not a valid JSON Schema: ${truncate(error.message)}` }];
    throw error;
  }
}

function readSchema(schemaText: string): {
  schema: Record<string, unknown>;
  isDraft07: boolean;
  extensions: Set<string>;
} {
  const extensions = new Set<string>();
  const parsed: unknown = JSON.parse(schemaText, (key, value: unknown) => {
    if (/^x-[\w:-]*$/.test(key)) extensions.add(key);
    return value;
  });
  // agentSchema guarantees that a schema is an object.
  const { $schema, $id: _id, ...schema } = parsed as Record<string, unknown>;
  return { schema, isDraft07: typeof $schema === "string" && /draft-0[67]/.test($schema), extensions };
}

function applyValidator(validate: ValidateFunction, value: unknown): SchemaFault[] {
  try {
    if (validate(value)) return [];
  } catch (error) {
    // A schema with endless self-references overflows the stack.
    if (error instanceof RangeError)
      return [{ path: "", message: "cannot be checked: the schema refers to itself endlessly" }];
    throw error;
  }
  return toUniqueFaults(validate.errors ?? []);
}

function toUniqueFaults(errors: readonly ErrorObject[]): SchemaFault[] {
  const faults = new Map<string, SchemaFault>();
  for (const error of errors) {
    if (faults.size >= maxFaults) break;
    const fault = toFault(error);
    faults.set(`${fault.path}\0${fault.message}`, fault);
  }
  return [...faults.values()];
}

/** Never shows the values themselves: they may be secret. */
function toFault({ keyword, instancePath, params, message, parentSchema }: ErrorObject): SchemaFault {
  if (keyword === "required")
    return { path: `${instancePath}/${escapePointer(String(params["missingProperty"]))}`, message: "is required" };
  if (keyword === "additionalProperties" || keyword === "unevaluatedProperties") {
    const name = String(params["additionalProperty"] ?? params["unevaluatedProperty"]);
    const suggestion = suggest(name.slice(0, 100), Object.keys(Object(parentSchema?.["properties"])));
    return {
      path: `${instancePath}/${escapePointer(name)}`,
      message: `is not a known property.${suggestion ? ` Did you mean ${suggestion}?` : ""}`,
    };
  }
  if (keyword === "enum") {
    const allowed = (params["allowedValues"] as unknown[]).slice(0, 20).map((value) => JSON.stringify(value)); // ajv defines this shape.
    return { path: instancePath, message: truncate(`must be one of ${allowed.join(", ")}`) };
  }
  return { path: instancePath, message: truncate(message ?? `does not match ${keyword}`) };
}

function truncate(text: string): string {
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

function serve(port: NonNullable<typeof parentPort>): void {
  const engine = createSchemaEngine();
  const report = (message: Report): void => port.postMessage(message);
  port.on("message", (request: CheckRequest) => {
    if (request.kind === "schema") return report({ type: "done", faults: engine.checkSchema(request.schemaText) });
    const faults = engine.compile(request.schemaText);
    if (faults.length > 0) return report({ type: "done", faults });
    report({ type: "compiled" });
    report({ type: "done", faults: engine.check(request.schemaText, JSON.parse(request.valueText)) });
  });
  report({ type: "ready", thread: getCurrentThread() });
}

// This file is also the entry point of the worker thread, so one bundle serves both.
if (!isMainThread && parentPort && workerData === workerName) serve(parentPort);
