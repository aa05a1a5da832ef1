import type * as z from "zod";

/** The input and output of one route. Its key in the table is "METHOD /path/{parameter}"; a final `{path*}` may contain slashes. */
export interface Contract {
  /** The OpenAPI operation id, which becomes the function name in generated clients. */
  id: string;
  summary: string;
  query?: z.ZodObject;
  headers?: z.ZodObject;
  /** If missing, only an empty body or {} is accepted. */
  body?: z.ZodType;
  /** Checked instead of `body` if the handler checks parts of the body itself. */
  checkedBody?: z.ZodType;
  /** The body is bytes instead of JSON. */
  takesBytes?: true;
  /** The responses by status: 2xx, 3xx, and refusals that do not already follow from the rest of the contract. */
  responses: Readonly<Record<number, ContractResponse>>;
}

/** The single 200 response that most routes have. */
export function ok<S extends z.ZodType>(description: string, schema: S) {
  return { 200: { description, schema } };
}

export interface ContractResponse {
  description: string;
  schema?: z.ZodType;
  /** Media type if it is not application/json. */
  media?: string;
}
