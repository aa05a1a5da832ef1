import type * as z from "zod";
import { agentContracts } from "./contracts/agents.ts";
import { overviewContracts } from "./contracts/overview.ts";
import { mcpContracts } from "./contracts/mcp.ts";
import { questionContracts } from "./contracts/questions.ts";
import { runnerContracts } from "./contracts/runners.ts";
import { runContracts } from "./contracts/runs.ts";
import { scheduleContracts } from "./contracts/schedules.ts";
import { systemContracts } from "./contracts/system.ts";
import { tokenContracts } from "./contracts/tokens.ts";
import { triggerContracts } from "./contracts/triggers.ts";

/** Every route there is. Order counts where a fixed path could be taken for a parameter. */
export const contracts = {
  ...runContracts,
  ...questionContracts,
  ...overviewContracts,
  ...agentContracts,
  ...scheduleContracts,
  ...runnerContracts,
  ...tokenContracts,
  ...mcpContracts,
  ...triggerContracts,
  ...systemContracts,
};

// Clients use the rest as types only, so that no schema is loaded with them.
export type Contracts = typeof contracts;
export type RouteName = keyof Contracts;

/** What a handler is given of the query and the body. */
export type QueryOf<R extends RouteName> = Contracts[R] extends { query: infer Q extends z.ZodType }
  ? z.output<Q>
  : undefined;
export type BodyOf<R extends RouteName> = Contracts[R] extends { body: infer B extends z.ZodType }
  ? z.output<B>
  : undefined;

export type HeadersOf<R extends RouteName> = Contracts[R] extends { headers: infer H extends z.ZodType }
  ? z.output<H>
  : undefined;

/** The JSON that a route answers with; undefined for one without any. */
export type Output<R extends RouteName> = AnswerOf<Contracts[R]["responses"]>;
type AnswerOf<A> = {
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

/** What a caller passes. What has a default may be left out. */
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
