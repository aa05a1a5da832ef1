import type { LanguageModelV3 } from "@ai-sdk/provider";
import { RequestError } from "../model/errors.ts";
import { generateWith } from "./ai-sdk.ts";
import type { ProviderDefinition } from "./definition.ts";
import { loadPackage, type OptionalPackage } from "./optional-package.ts";
import type { Environment } from "../model/environment.ts";

const sdk: OptionalPackage = { name: "@ai-sdk/amazon-bedrock", version: "4.0.186" };

/** The part of the package that Drover uses. It is optional, so its own types cannot be imported. */
interface BedrockPackage {
  createAmazonBedrock(options: Record<string, string | undefined>): (model: string) => LanguageModelV3;
}

export const bedrock: ProviderDefinition = {
  // Bedrock has two ways to log in: see `readCredentials`.
  keyVariable: null,
  baseUrlVariable: "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
  // The available models differ by region and contract.
  defaultModel: null,
  async open({ base_url }, { env, directory }) {
    const credentials = readCredentials(env);
    const { createAmazonBedrock } = await loadPackage<BedrockPackage>(sdk, { directory, env }, "The provider bedrock");
    const service = createAmazonBedrock({
      ...credentials,
      region: env["AWS_REGION"] || env["AWS_DEFAULT_REGION"] || "us-east-1",
      ...(base_url === undefined ? {} : { baseURL: base_url }),
    });
    const variable = "apiKey" in credentials ? "AWS_BEARER_TOKEN_BEDROCK" : "AWS_ACCESS_KEY_ID";
    return { generate: generateWith({ provider: "bedrock", variable, model: (name) => service(name) }) };
  },
};

/** Returns a bearer token, or the keys that sign each request. */
function readCredentials(env: Environment): Record<string, string | undefined> {
  if (env["AWS_BEARER_TOKEN_BEDROCK"]) return { apiKey: env["AWS_BEARER_TOKEN_BEDROCK"] };
  const missingVariable = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].find((name) => !env[name]);
  if (missingVariable !== undefined)
    throw new RequestError({
      code: "DROVER-LLM-002",
      field: missingVariable,
      message: `The provider bedrock needs AWS credentials, but ${missingVariable} is not set.`,
      next:
        "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_BEARER_TOKEN_BEDROCK, in the environment of the runner, " +
        "or of the command that runs the agent; or choose another provider.",
    });
  return {
    accessKeyId: env["AWS_ACCESS_KEY_ID"],
    secretAccessKey: env["AWS_SECRET_ACCESS_KEY"],
    sessionToken: env["AWS_SESSION_TOKEN"],
  };
}
