import type { ApiClient } from "../wire/client.ts";
import { connectOrFail } from "./connect.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import type { CommandInput, CommandSpec } from "./options.ts";

export const uiCommand: CommandSpec = {
  name: "ui",
  summary: "print a link that signs a browser in to the dashboard; it works once, within ten minutes",
  placeholders: "",
  arity: [0, 0],
  examples: [
    ["drover ui", "for the coordinator of this directory"],
    [
      "DROVER_API_URL=https://drover.example DROVER_API_KEY=drv_... drover ui",
      "for another one; the browser gets the permissions of the token",
    ],
  ],
  options: {},
  run: printLink,
};

async function printLink(input: CommandInput): Promise<number> {
  const client = await connectOrFail(input);
  const address = await createSignInAddress(client);
  write(1, input.options["json"] ? toJsonLine({ url: address }) : `${address}\n`);
  return 0;
}

/** Creates the address of a sign-in link. The code is in the fragment, which browsers do not send and proxies do not log. */
export async function createSignInAddress(client: ApiClient): Promise<string> {
  const { code } = await client.signIn.link();
  return `${client.url.replace(/\/+$/, "")}/ui/${code === null ? "" : `#code=${code}`}`;
}
