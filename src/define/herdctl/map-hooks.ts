import { isRecord } from "../merge-keys.ts";
import { note, type Source } from "./source.ts";

type Keys = Record<string, unknown>;

/**
 * Converts webhooks to webhook names, with a note on how to register each, because an agent does not contain URLs. Converts
 * shell hooks to one `on_finish` command that tests how the run ended. If several sources have a list, the last one wins,
 * so an empty list removes the hooks of the agent's file.
 */
export function mapHooks(sources: readonly Source[]): Keys {
  const definitions = sources.flatMap((source) =>
    isRecord(source.keys["hooks"]) ? [{ source, lists: source.keys["hooks"] }] : [],
  );
  for (const { source, lists } of definitions)
    for (const list of Object.keys(lists))
      if (list !== "after_run" && list !== "on_error")
        note(source, ["hooks", list], "is an unknown key; it was skipped");
  const webhooks: string[] = [];
  const commands = (["after_run", "on_error"] as const).flatMap((list) => {
    const lastDefinition = definitions.findLast(({ lists }) => lists[list] !== undefined);
    const hooks: unknown = lastDefinition?.lists[list];
    return (Array.isArray(hooks) ? hooks : []).flatMap((hook: unknown, index) => {
      const keys = isRecord(hook) ? hook : {};
      const defaultEvents = list === "on_error" ? ["failed"] : null;
      const name = mapWebhook(keys, ["hooks", list, index], defaultEvents, lastDefinition!.source);
      if (name !== null) webhooks.push(name);
      return name === null ? mapCommand(keys, ["hooks", list, index], defaultEvents, lastDefinition!.source) : [];
    });
  });
  const webhookKeys = webhooks.length === 0 ? {} : { webhooks: [...new Set(webhooks)] };
  if (commands.length === 0) return webhookKeys;
  const input = "it gets DROVER_RUN_ID, DROVER_RUN_STATUS and DROVER_RUN_REASON, and nothing on stdin";
  note(definitions[0]!.source, ["hooks"], `became on_finish: ${input}`);
  return { ...webhookKeys, on_finish: `sh -c ${quoteForShell(commands.join("\n"))}` };
}

/** The name to register the webhook under; null for any other kind of hook. */
function mapWebhook(hook: Keys, path: PropertyKey[], defaultEvents: string[] | null, source: Source): string | null {
  const { type, url, on_events, name, when } = hook;
  if (type !== "webhook" || typeof url !== "string" || when !== undefined) return null;
  const host = URL.canParse(url) ? new URL(url).hostname : "webhook";
  const slug = String(name ?? host)
    .replaceAll(/[^A-Za-z0-9._-]+/g, "-")
    .replaceAll(/^[._-]+/g, "")
    .slice(0, 100);
  const webhookName = slug === "" ? "webhook" : slug;
  const events = (Array.isArray(on_events) ? on_events.map(String) : null) ??
    defaultEvents ?? ["completed", "failed", "cancelled"];
  const statuses = new Set(events.map((event) => (event === "timeout" ? "failed" : event)));
  const options = [...statuses].map((event) => ` --event ${event}`).join("");
  note(
    source,
    path,
    `became the webhook ${webhookName}; register it: drover webhooks add ${webhookName} ${quoteForShell(url)} --named${options}`,
  );
  return webhookName;
}

function mapCommand(hook: Keys, path: PropertyKey[], defaultEvents: string[] | null, source: Source): string[] {
  const { type, command, on_events, when, timeout, continue_on_error, name: _name, ...others } = hook;
  if (type !== "shell" || typeof command !== "string") {
    const problem =
      type === "shell" ? "has no command" : `of type ${String(type)} has no equivalent: send it from a shell hook`;
    note(source, path, `${problem}; it was skipped`);
    return [];
  }
  if (when !== undefined) {
    note(source, [...path, "when"], "has no equivalent, so the hook was skipped");
    return [];
  }
  if (timeout !== undefined)
    note(source, [...path, "timeout"], "has no equivalent: on_finish as a whole may take 60 s");
  if (continue_on_error === false)
    note(source, [...path, "continue_on_error"], "has no equivalent: the next hook always runs");
  for (const key of Object.keys(others)) note(source, [...path, key], "has no equivalent");
  const events = (Array.isArray(on_events) ? on_events.map(String) : null) ?? defaultEvents;
  return [events === null ? command : `if ${events.map(createStatusTest).join(" || ")}; then\n${command}\nfi`];
}

function createStatusTest(event: string): string {
  return event === "timeout"
    ? '[ "$DROVER_RUN_REASON" = timeout ]'
    : `[ "$DROVER_RUN_STATUS" = ${quoteForShell(event)} ]`;
}

function quoteForShell(text: string): string {
  return /^[A-Za-z0-9_-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
