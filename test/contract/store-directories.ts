import { describe, expect, it } from "vitest";
import { createAgent } from "../fixtures/dispatch/drive.ts";
import { eachWithStore, type OpenedForDispatch } from "./each-with-store.ts";

const chat = createAgent("chat", { type: "autonomous", command: null });
const inPlaceAgent = createAgent("here", { type: "autonomous", command: null, workspace: "in_place" });
const scratchAgent = createAgent("scratch", { type: "autonomous", command: null, workspace: "scratch" });

/** What every store must do about runs that work in place: one at a time per directory and host. */
export function storeDirectoryContract(engine: string, open: () => Promise<OpenedForDispatch>): void {
  describe(`${engine} keeps the directory contract`, () => {
    const { store, d, advance } = eachWithStore(open);

    it("lets one run at a time into a directory, and holds up nothing else", async () => {
      const [one, two, three] = [
        await d.submit({ project_dir: "/p" }, chat),
        await d.submit({ project_dir: "/p" }, chat),
        await d.submit({ project_dir: "/p" }, chat),
      ];
      const others = [
        await d.submit({ project_dir: "/q" }, chat),
        await d.submit({ project_dir: "/p" }, scratchAgent),
        await d.submit({}, chat),
        await d.submit({ project_dir: "/p" }),
      ];
      const [a, b] = [await d.register("a"), await d.register("b")];
      expect(await d.claim(a, 10)).toEqual([one, ...others]);
      expect(await d.claim(b, 10)).toEqual([]);
      expect(await store.read.why(two)).toEqual([
        { demand: "directory", detail: "Another run is working in /p on host." },
      ]);
      expect(await store.read.runners_with_work(["b"])).toEqual([]);
      await d.finish(a, one, 1);
      expect(await d.claim(b, 10)).toEqual([two]);
      expect(await d.claim(a, 10)).toEqual([]);
      await d.finish(b, two, 1);
      expect(await d.claim(a, 10)).toEqual([three]);
    });

    it("uses the runner's own directory if the agent works in place and none is given", async () => {
      const [one, two, withDirectory] = [
        await d.submit({}, inPlaceAgent),
        await d.submit({}, inPlaceAgent),
        await d.submit({ project_dir: "/project" }, inPlaceAgent),
      ];
      const a = await d.register("a");
      const otherRunner = await d.register("b", { project_dir: "/other" });
      expect(await d.claim(a, 10)).toEqual([one]);
      // Another directory on the same host. It may not be theirs, but they were blocked for /project.
      expect(await d.claim(otherRunner, 10)).toEqual([]);
      await d.finish(a, one, 1);
      expect(await d.claim(otherRunner, 1)).toEqual([two]);
      expect(await d.claim(a, 10)).toEqual([withDirectory]);
    });

    it("keeps the same path on two hosts separate", async () => {
      const one = await d.submit({ project_dir: "/p", demands: { hostname: "x" } }, chat);
      const two = await d.submit({ project_dir: "/p", demands: { hostname: "y" } }, chat);
      const third = await d.submit({ project_dir: "/p", demands: { hostname: "y" } }, chat);
      expect(await d.claim(await d.register("a", { hostname: "x" }), 5)).toEqual([one]);
      expect(await d.claim(await d.register("b", { hostname: "y" }), 5)).toEqual([two]);
      expect(await store.read.why(third)).toMatchObject([{ demand: "directory" }]);
    });

    it.each(["finish", "give back", "loss", "stop", "leave", "forgotten claim"])(
      "releases the next run and notifies runners after a %s",
      async (how) => {
        const one = await d.submit({ project_dir: "/p" }, chat);
        const two = await d.submit({ project_dir: "/p", demands: { hostname: "host" } }, chat);
        const a = await d.register("a");
        expect(await d.claim(a, 5, "c1")).toEqual([one]);
        const announcements: unknown[] = [];
        store.changes(({ claimable }) => announcements.push(...claimable));
        if (how === "finish") await d.finish(a, one, 1);
        if (how === "give back") await d.finish(a, one, 1, { give_back: "at_no_cost" });
        if (how === "leave") await store.apply([{ op: "leave_runner", ...a }]);
        if (how === "forgotten claim") {
          await d.claim(a, 0, "c2");
          await d.beat(a, [], "c1");
        }
        if (how === "loss") {
          advance(11_000);
          await store.apply([{ op: "rescue", unmatched_ms: 1e9, limit: 10 }]);
        }
        if (how === "stop") {
          await store.apply([{ op: "stop_runs", run_ids: [one], reason: "user", by: "ann" }]);
          expect(await d.claim(a, 5)).toEqual([]);
          await d.finish(a, one, 1, { give_back: "at_no_cost" });
        }
        expect(announcements).toContainEqual({ hostname: "host" });
        const b = await d.register("b", { hostname: "host" });
        const claimed = await d.claim(b, 1);
        // A run that was put back was there before.
        expect(["give back", "leave", "forgotten claim"].includes(how) ? [one] : [two]).toEqual(claimed);
      },
    );

    it("does not let a run that no runner can take hold up the others", async () => {
      const one = await d.submit({ project_dir: "/p" }, chat);
      const unmatchable = await d.submit({ project_dir: "/p", demands: { tags: ["gpu"] } }, chat);
      const three = await d.submit({ project_dir: "/p" }, chat);
      const a = await d.register("a", { tags: ["gpu"] });
      const b = await d.register("b");
      expect(await d.claim(a, 5)).toEqual([one]);
      await d.finish(a, one, 1);
      await store.apply([{ op: "leave_runner", ...a }]);
      expect(await d.claim(b, 5)).toEqual([three]);
      expect(await d.statuses(unmatchable)).toEqual(["pending"]);
    });

    it("blocks any number of runs and still finds those that may start", async () => {
      const [first, ...rest] = await Promise.all(
        Array.from({ length: 700 }, () => d.submit({ project_dir: "/p" }, chat)),
      );
      const inOtherDirectory = await d.submit({ project_dir: "/q" }, chat);
      const a = await d.register("a");
      expect(await d.claim(a, 1)).toEqual([[first, ...rest].sort()[0]]);
      const runners = new Set<string>();
      store.changes((change) => change.runnersWithOrders.forEach((id) => runners.add(id)));
      // One claim blocks only so many, and reports that there is more to do.
      expect(await d.claim(a, 1)).toEqual([]);
      expect([...runners]).toEqual(["a"]);
      expect(await d.claim(a, 1)).toEqual([inOtherDirectory]);
    });
  });
}
