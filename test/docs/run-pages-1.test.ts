import { testPages } from "./shard.ts";

testPages(1);
