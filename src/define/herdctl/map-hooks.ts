import { isRecord } from "../merge-keys.ts";
import { note, type Source } from "./source.ts";

type Keys = Record<string, unknown>;

/**
 * Turns webhooks into webhook names, with a note on how to register each: an agent does not contain addresses. Turns
 * shell hooks into one `on_finish` command that tests how the run ended. If several sources have a list, the last one
 * wins, so an empty list removes the hooks of the agent's file.
 */
export function mapHooks(sources: readonly Source[]): Keys {
  const given = sources.flatMap((source) =>
    isRecord(source.keys["hooks"]) ? [{ source, lists: source.keys["hooks"] }] : [],
  );
  for (const { source, lists } of given)
    for (const list of Object.keys(lists))
      if (list !== "after_run" && list !== "on_error")
        note(source, ["hooks", list], "is not a key that this import knows; it was left out");
  const webhooks: string[] = [];
  const commands = (["after_run", "on_error"] as const).flatMap((list) => {
    const last = given.findLast(({ lists }) => lists[list] !== undefined);
    const hooks: unknown = last?.lists[list];
    return (Array.isArray(hooks) ? hooks : []).flatMap((hook: unknown, at) => {
      const keys = isRecord(hook) ? hook : {};
      const only = list === "on_error" ? ["failed"] : null;
      const name = webhookOf(keys, ["hooks", list, at], only, last!.source);
      if (name !== null) webhooks.push(name);
      return name === null ? commandOf(keys, ["hooks", list, at], only, last!.source) : [];
    });
  });
  const named = webhooks.length === 0 ? {} : { webhooks: [...new Set(webhooks)] };
  if (commands.length === 0) return named;
  const input = "it gets DROVER_RUN_ID, DROVER_RUN_STATUS and DROVER_RUN_REASON, and nothing on stdin";
  note(given[0]!.source, ["hooks"], `became on_finish: ${input}`);
  return { ...named, on_finish: `sh -c ${quoted(commands.join("\n"))}` };
}

/** The name to register the webhook under; null for any other kind of hook. */
function webhookOf(hook: Keys, at: PropertyKey[], only: string[] | null, source: Source): string | null {
  const { type, url, on_events, name, when } = hook;
  if (type !== "webhook" || typeof url !== "string" || when !== undefined) return null;
  const host = URL.canParse(url) ? new URL(url).hostname : "webhook";
  const slug = String(name ?? host)
    .replaceAll(/[^A-Za-z0-9._-]+/g, "-")
    .replaceAll(/^[._-]+/g, "")
    .slice(0, 100);
  const registered = slug === "" ? "webhook" : slug;
  const events = (Array.isArray(on_events) ? on_events.map(String) : null) ??
    only ?? ["completed", "failed", "cancelled"];
  const known = new Set(events.map((event) => (event === "timeout" ? "failed" : event)));
  const options = [...known].map((event) => ` --event ${event}`).join("");
  note(
    source,
    at,
    `became the webhook ${registered}; register it: drover webhooks add ${registered} ${quoted(url)} --named${options}`,
  );
  return registered;
}

function commandOf(hook: Keys, at: PropertyKey[], only: string[] | null, source: Source): string[] {
  const { type, command, on_events, when, timeout, continue_on_error, name: _name, ...others } = hook;
  if (type !== "shell" || typeof command !== "string") {
    const what =
      type === "shell" ? "has no command" : `of type ${String(type)} has no equivalent: send it from a shell hook`;
    note(source, at, `${what}; it was left out`);
    return [];
  }
  if (when !== undefined) {
    note(source, [...at, "when"], "has no equivalent, so the hook was left out");
    return [];
  }
  if (timeout !== undefined) note(source, [...at, "timeout"], "has no equivalent: on_finish as a whole has 60 s");
  if (continue_on_error === false) note(source, [...at, "continue_on_error"], "has no equivalent: the next one runs");
  for (const key of Object.keys(others)) note(source, [...at, key], "has no equivalent");
  const events = (Array.isArray(on_events) ? on_events.map(String) : null) ?? only;
  return [events === null ? command : `if ${events.map(test).join(" || ")}; then\n${command}\nfi`];
}

function test(event: string): string {
  return event === "timeout" ? '[ "$DROVER_RUN_REASON" = timeout ]' : `[ "$DROVER_RUN_STATUS" = ${quoted(event)} ]`;
}

function quoted(text: string): string {
  return /^[A-Za-z0-9_-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
