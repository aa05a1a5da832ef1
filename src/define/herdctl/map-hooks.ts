import { isKeys } from "../merge-keys.ts";
import { note, type Source } from "./source.ts";

type Keys = Record<string, unknown>;

/**
 * Shell hooks become the one command of `on_finish`, each with a test of how the run ended. Of several sources the last
 * that has a list decides about it: an empty one takes the hooks of the file away.
 */
export function mapHooks(sources: readonly Source[]): Keys {
  const given = sources.flatMap((source) =>
    isKeys(source.keys["hooks"]) ? [{ source, lists: source.keys["hooks"] }] : [],
  );
  for (const { source, lists } of given)
    for (const list of Object.keys(lists))
      if (list !== "after_run" && list !== "on_error")
        note(source, ["hooks", list], "is not a key that this import knows; it was left out");
  const commands = (["after_run", "on_error"] as const).flatMap((list) => {
    const last = given.findLast(({ lists }) => lists[list] !== undefined);
    const hooks: unknown = last?.lists[list];
    return (Array.isArray(hooks) ? hooks : []).flatMap((hook: unknown, at) =>
      commandOf(isKeys(hook) ? hook : {}, ["hooks", list, at], list === "on_error" ? ["failed"] : null, last!.source),
    );
  });
  if (commands.length === 0) return {};
  const means = "it gets DROVER_RUN_ID, DROVER_RUN_STATUS and DROVER_RUN_REASON, and nothing on stdin";
  note(given[0]!.source, ["hooks"], `became on_finish: ${means}`);
  return { on_finish: `sh -c ${quoted(commands.join("\n"))}` };
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
