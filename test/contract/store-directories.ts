import { describe, expect, it } from "vitest";
import { createAgent } from "../fixtures/dispatch/drive.ts";
import { eachWithStore, type OpenedForDispatch } from "./each-with-store.ts";

const chat = createAgent("chat", { type: "autonomous", command: null });
const inPlaceAgent = createAgent("here", { type: "autonomous", command: null, workspace: "in_place" });
const scratchAgent = createAgent("scratch", { type: "autonomous", command: null, workspace: "scratch" });

/** What every store must do about runs that work in place: one at a time per directory and host. */
export function storeDirectoryContract(engine: string, open: () => Promise<OpenedForDispatch>): void {
  describe(`${engine} keeps the directory contract`, () => {
    const { store, driver, advance } = eachWithStore(open);

    it("lets one run at a time into a directory, and holds up nothing else", async () => {
      const [one, two, three] = [
        await driver.submit({ project_dir: "/p" }, chat),
        await driver.submit({ project_dir: "/p" }, chat),
        await driver.submit({ project_dir: "/p" }, chat),
      ];
      const others = [
        await driver.submit({ project_dir: "/q" }, chat),
        await driver.submit({ project_dir: "/p" }, scratchAgent),
        await driver.submit({}, chat),
        await driver.submit({ project_dir: "/p" }),
      ];
      const [a, b] = [await driver.register("a"), await driver.register("b")];
      expect(await driver.claim(a, 10)).toEqual([one, ...others]);
      expect(await driver.claim(b, 10)).toEqual([]);
      expect(await store.read.why(two)).toEqual([
        { demand: "directory", detail: "Another run is working in /p on host." },
      ]);
      expect(await store.read.runners_with_work(["b"])).toEqual([]);
      await driver.finish(a, one, 1);
      expect(await driver.claim(b, 10)).toEqual([two]);
      expect(await driver.claim(a, 10)).toEqual([]);
      await driver.finish(b, two, 1);
      expect(await driver.claim(a, 10)).toEqual([three]);
    });

    it("uses the runner's own directory if the agent works in place and none is given", async () => {
      const [one, two, withDirectory] = [
        await driver.submit({}, inPlaceAgent),
        await driver.submit({}, inPlaceAgent),
        await driver.submit({ project_dir: "/project" }, inPlaceAgent),
      ];
      const a = await driver.register("a");
      const otherRunner = await driver.register("b", { project_dir: "/other" });
      expect(await driver.claim(a, 10)).toEqual([one]);
      // Another directory on the same host. It may not be theirs, but they were blocked for /project.
      expect(await driver.claim(otherRunner, 10)).toEqual([]);
      await driver.finish(a, one, 1);
      expect(await driver.claim(otherRunner, 1)).toEqual([two]);
      expect(await driver.claim(a, 10)).toEqual([withDirectory]);
    });

    it("keeps the same path on two hosts separate", async () => {
      const one = await driver.submit({ project_dir: "/p", demands: { hostname: "x" } }, chat);
      const two = await driver.submit({ project_dir: "/p", demands: { hostname: "y" } }, chat);
      const third = await driver.submit({ project_dir: "/p", demands: { hostname: "y" } }, chat);
      expect(await driver.claim(await driver.register("a", { hostname: "x" }), 5)).toEqual([one]);
      expect(await driver.claim(await driver.register("b", { hostname: "y" }), 5)).toEqual([two]);
      expect(await store.read.why(third)).toMatchObject([{ demand: "directory" }]);
    });

    it.each(["finish", "give back", "loss", "stop", "leave", "forgotten claim"])(
      "releases the next run and notifies runners after a %s",
      async (how) => {
        const one = await driver.submit({ project_dir: "/p" }, chat);
        const two = await driver.submit({ project_dir: "/p", demands: { hostname: "host" } }, chat);
        const a = await driver.register("a");
        expect(await driver.claim(a, 5, "c1")).toEqual([one]);
        const announcements: unknown[] = [];
        store.changes(({ claimable }) => announcements.push(...claimable));
        if (how === "finish") await driver.finish(a, one, 1);
        if (how === "give back") await driver.finish(a, one, 1, { give_back: "at_no_cost" });
        if (how === "leave") await store.apply([{ op: "leave_runner", ...a }]);
        if (how === "forgotten claim") {
          await driver.claim(a, 0, "c2");
          await driver.beat(a, [], "c1");
        }
        if (how === "loss") {
          advance(11_000);
          await store.apply([{ op: "rescue", unmatched_ms: 1e9, limit: 10 }]);
        }
        if (how === "stop") {
          await store.apply([{ op: "stop_runs", run_ids: [one], reason: "user", by: "ann" }]);
          expect(await driver.claim(a, 5)).toEqual([]);
          await driver.finish(a, one, 1, { give_back: "at_no_cost" });
        }
        expect(announcements).toContainEqual({ hostname: "host" });
        const b = await driver.register("b", { hostname: "host" });
        const claimed = await driver.claim(b, 1);
        // A run that was put back was there before.
        expect(["give back", "leave", "forgotten claim"].includes(how) ? [one] : [two]).toEqual(claimed);
      },
    );

    it("does not let a run that no runner can take hold up the others", async () => {
      const one = await driver.submit({ project_dir: "/p" }, chat);
      const unmatchable = await driver.submit({ project_dir: "/p", demands: { tags: ["gpu"] } }, chat);
      const three = await driver.submit({ project_dir: "/p" }, chat);
      const a = await driver.register("a", { tags: ["gpu"] });
      const b = await driver.register("b");
      expect(await driver.claim(a, 5)).toEqual([one]);
      await driver.finish(a, one, 1);
      await store.apply([{ op: "leave_runner", ...a }]);
      expect(await driver.claim(b, 5)).toEqual([three]);
      expect(await driver.statuses(unmatchable)).toEqual(["pending"]);
    });

    it("blocks any number of runs and still finds those that may start", async () => {
      const [first, ...rest] = await Promise.all(
        Array.from({ length: 700 }, () => driver.submit({ project_dir: "/p" }, chat)),
      );
      const inOtherDirectory = await driver.submit({ project_dir: "/q" }, chat);
      const a = await driver.register("a");
      expect(await driver.claim(a, 1)).toEqual([[first, ...rest].sort()[0]]);
      const runners = new Set<string>();
      store.changes((change) => change.runnersWithOrders.forEach((id) => runners.add(id)));
      // One claim blocks only so many, and reports that there is more to do.
      expect(await driver.claim(a, 1)).toEqual([]);
      expect([...runners]).toEqual(["a"]);
      expect(await driver.claim(a, 1)).toEqual([inOtherDirectory]);
    });
  });
}
