import type * as z from "zod";

/** What one route takes and gives. Its key in the table is "METHOD /path/{parameter}"; a last `{path*}` may hold slashes. */
export interface Contract {
  /** The operation id of the OpenAPI document, and so the name of the function in a generated client. */
  id: string;
  summary: string;
  query?: z.ZodObject;
  headers?: z.ZodObject;
  /** Without one, only an empty body or {} is accepted. */
  body?: z.ZodType;
  /** The body is bytes instead of JSON. */
  takesBytes?: true;
  /** By status: 2xx and 3xx, and refusals beyond those that follow from the rest of the row. */
  responses: Readonly<Record<number, ContractResponse>>;
}

/** The one answer that most routes have. */
export function ok<S extends z.ZodType>(description: string, schema: S) {
  return { 200: { description, schema } };
}

export interface ContractResponse {
  description: string;
  schema?: z.ZodType;
  /** Where it is not application/json. */
  media?: string;
}
