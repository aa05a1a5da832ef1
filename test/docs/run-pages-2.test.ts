import { testPages } from "./shard.ts";

testPages(2);
