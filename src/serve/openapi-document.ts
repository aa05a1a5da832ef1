/** The subset of OpenAPI 3.1 that Drover generates. */
export type JsonSchema = Record<string, unknown>;

export interface OpenApiDocument {
  openapi: "3.1.0";
  info: { title: string; version: string; description: string };
  servers: { url: string; description?: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, JsonSchema>; securitySchemes: Record<string, unknown> };
}

export interface Operation {
  operationId: string;
  summary: string;
  description: string;
  security?: Record<string, string[]>[];
  parameters: {
    name: string;
    in: "path" | "query" | "header";
    required: boolean;
    schema: JsonSchema;
    /** `form` without `explode`: a list is comma-separated. */
    style?: "form";
    explode?: boolean;
  }[];
  requestBody?: { required: boolean; content: Content };
  responses: Record<string, { description: string; content?: Content }>;
}

type Content = Record<string, { schema: JsonSchema }>;
