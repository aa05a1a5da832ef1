import type * as z from "zod";
import { agentContracts } from "./contracts/agents.ts";
import { statsAndAuditContracts } from "./contracts/stats-and-audit.ts";
import { mcpContracts } from "./contracts/mcp.ts";
import { questionContracts } from "./contracts/questions.ts";
import { runnerContracts } from "./contracts/runners.ts";
import { runContracts } from "./contracts/runs.ts";
import { scheduleContracts } from "./contracts/schedules.ts";
import { systemContracts } from "./contracts/system.ts";
import { tokenContracts } from "./contracts/tokens.ts";
import { triggerContracts } from "./contracts/triggers.ts";

/** Every route. A fixed path must come before a parameter that would also match it. */
export const contracts = {
  ...runContracts,
  ...questionContracts,
  ...statsAndAuditContracts,
  ...agentContracts,
  ...scheduleContracts,
  ...runnerContracts,
  ...tokenContracts,
  ...mcpContracts,
  ...triggerContracts,
  ...systemContracts,
};

// Clients import only these types, so they load no schema.
export type Contracts = typeof contracts;
export type RouteName = keyof Contracts;

/** The parsed query and body that a handler receives. */
export type QueryOf<R extends RouteName> = Contracts[R] extends { query: infer Q extends z.ZodType }
  ? z.output<Q>
  : undefined;
export type BodyOf<R extends RouteName> = Contracts[R] extends { checkedBody: infer B extends z.ZodType }
  ? z.output<B>
  : Contracts[R] extends { body: infer B extends z.ZodType }
    ? z.output<B>
    : undefined;

export type HeadersOf<R extends RouteName> = Contracts[R] extends { headers: infer H extends z.ZodType }
  ? z.output<H>
  : undefined;

/** The JSON of a route's success response; undefined if it has none. */
export type Output<R extends RouteName> = ResponseOf<Contracts[R]["responses"]>;
type ResponseOf<A> = {
  [Status in keyof A]: Status extends 200 | 201 | 202 ? JsonOf<A[Status]> : never;
}[keyof A] extends infer T
  ? [T] extends [never]
    ? undefined
    : T
  : never;
type JsonOf<A> = A extends { media: string }
  ? never
  : A extends { schema: infer S extends z.ZodType }
    ? z.output<S>
    : never;

/** The input a caller passes. Fields with a default are optional. */
export type Input<R extends RouteName> = ParamsIn<R> &
  QueryIn<Contracts[R]> &
  BodyIn<Contracts[R]> &
  HeadersIn<Contracts[R]>;
type ParamsIn<R extends string> = [ParamNames<R>] extends [never]
  ? { params?: undefined }
  : { params: Readonly<Record<ParamNames<R>, string>> };
type ParamNames<S> = S extends `${string}{${infer Name}}${infer Rest}`
  ? (Name extends `${infer Slashed}*` ? Slashed : Name) | ParamNames<Rest>
  : never;
type QueryIn<C> = C extends { query: infer Q extends z.ZodType }
  ? { query?: Partial<z.output<Q>> }
  : { query?: undefined };
type BodyIn<C> = C extends { body: infer B extends z.ZodType }
  ? undefined extends z.input<B>
    ? { body?: z.input<B> }
    : { body: z.input<B> }
  : { body?: undefined };
type HeadersIn<C> = C extends { headers: infer H extends z.ZodType }
  ? { headers?: Partial<z.input<H>> }
  : { headers?: undefined };
