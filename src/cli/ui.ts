import type { ApiClient } from "../wire/client.ts";
import { connectOrFail } from "./connect.ts";
import { write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import type { CommandInput, CommandSpec } from "./options.ts";

export const uiCommand: CommandSpec = {
  name: "ui",
  summary: "prints a link that signs a browser in to the dashboard, once, within ten minutes",
  takes: "",
  arity: [0, 0],
  examples: [
    ["drover ui", "of the coordinator of this directory"],
    [
      "DROVER_API_URL=https://drover.example DROVER_API_KEY=drv_... drover ui",
      "of another; the browser may do what that token may",
    ],
  ],
  options: {},
  run: printLink,
};

async function printLink(input: CommandInput): Promise<number> {
  const client = await connectOrFail(input);
  const address = await signInAddress(client);
  write(1, input.options["json"] ? jsonLine({ url: address }) : `${address}\n`);
  return 0;
}

/** The code is in the fragment, which no browser sends and no proxy logs. */
export async function signInAddress(client: ApiClient): Promise<string> {
  const { code } = await client.signIn.link();
  return `${client.url.replace(/\/+$/, "")}/ui/${code === null ? "" : `#code=${code}`}`;
}
