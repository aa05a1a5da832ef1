import { processContract } from "../../test/contract/process.ts";
import { hostHas } from "../../test/fixtures/process/host.ts";
import { createStart, start } from "./start.ts";

const perl = createStart({ launchMethods: ["perl"] });
const plain = createStart({ launchMethods: ["plain"] });

processContract("no isolation", { start, isolation: "none", applied: "none", reach: "command" });
processContract("plain process group", { start: plain, isolation: "auto", applied: "group", reach: "group" });
processContract("group by the launcher", { start, isolation: "group", applied: "group", reach: "everything" });
processContract("group by perl", { start: perl, isolation: "group", applied: "group", reach: "everything" });
if (hostHas("pid")) {
  processContract("PID namespace by the launcher", { start, isolation: "pid", applied: "pid", reach: "everything" });
  processContract("the best available level", { start, isolation: "auto", applied: "pid", reach: "everything" });
  processContract("PID namespace by perl", { start: perl, isolation: "pid", applied: "pid", reach: "everything" });
}
if (hostHas("sandbox")) {
  processContract("sandbox by the launcher", { start, isolation: "sandbox", applied: "sandbox", reach: "everything" });
  processContract("sandbox by perl", { start: perl, isolation: "sandbox", applied: "sandbox", reach: "everything" });
}
