import type { IncomingMessage, ServerResponse } from "node:http";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { z } from "zod";
import type { ServeDeps } from "./deps.ts";
import type { LifeSigns } from "./life-signs.ts";
import type { OpenApiDocument } from "./openapi-document.ts";
import type { ObjectKind, Objects, Principal, Rule } from "./rule.ts";
import type { Standing, Stay } from "./standing.ts";

export type Method = "get" | "post" | "put" | "delete";

/** One row of the table that routing, authorization, the OpenAPI document and its tests are made from. */
export interface Route {
  method: Method;
  /** As in OpenAPI: /runs/{run_id}; a last part {path*} may itself have slashes. */
  path: string;
  rule: Rule;
  summary: string;
  query?: z.ZodType;
  headers?: z.ZodObject;
  /** Without one, only an empty body or {} is accepted. */
  body?: z.ZodType;
  bodyLimit?: number;
  /** The body is bytes, which the handler reads from `incoming` itself. */
  raw?: true;
  /** How long the record may take, before whoever asked is told that it does not answer. Only for what may be repeated. */
  recordMs?: number;
  answers: Readonly<Record<number, Answer>>;
  handle(call: AnyCall): Promise<Response>;
}

export interface Answer {
  description: string;
  schema?: z.ZodType;
  /** Where it is not application/json. */
  media?: string;
}

export interface Call<Query = undefined, Body = undefined, Object extends ObjectKind | undefined = undefined> {
  deps: ServeDeps;
  principal: Principal;
  params: Readonly<Record<string, string>>;
  headers: IncomingMessage["headers"];
  query: Query;
  body: Body;
  object: Object extends ObjectKind ? Objects[Object] : undefined;
  incoming: IncomingMessage;
  outgoing: ServerResponse;
  /** Whether the asker may still go on. A handler that waits has to look; one that writes is cut off. */
  stay: Stay;
  standing: Standing;
  lifeSigns: LifeSigns;
  /** The whole table as an OpenAPI document. */
  document(): OpenApiDocument;
}

export type AnyCall = Call<unknown, unknown, ObjectKind | undefined>;

type Parsed<T> = T extends z.ZodType ? z.output<T> : undefined;

/** Gives the handler the types that the rest of its row says. */
export function route<
  const Object extends ObjectKind | undefined = undefined,
  Query extends z.ZodType | undefined = undefined,
  Body extends z.ZodType | undefined = undefined,
>(
  row: Omit<Route, "handle" | "query" | "body" | "rule"> & {
    rule: Exclude<Rule, { roles: unknown }> | (Omit<Extract<Rule, { roles: unknown }>, "object"> & { object?: Object });
    query?: Query;
    body?: Body;
    handle(call: Call<Parsed<Query>, Parsed<Body>, Object>): Promise<Response>;
  },
): Route {
  // the app hands every handler what its own row's schemas and object made: the types above say exactly that
  return row as unknown as Route;
}

/** A path of the table with its parameters as another notation has them. */
export function withParameters(path: string, write: (name: string, slashes: boolean) => string): string {
  return path.replaceAll(/\{(\w+)(\*?)\}/g, (_, name: string, star: string) => write(name, star === "*"));
}

export function json(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value), {
    status,
    headers: { "content-type": "application/json", "cache-control": "no-store" },
  });
}

export function noContent(): Response {
  return new Response(null, { status: 204 });
}

/** The handler has written, or is still writing, the answer itself. */
export function alreadySent(): Response {
  return RESPONSE_ALREADY_SENT;
}
