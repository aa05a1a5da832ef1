// An executor inside the runner that does nothing but say when it was begun: what is measured is everything around it.
import { connect } from "node:net";

export function createExecutor({ socket: path }) {
  const socket = connect(path);
  return {
    name: "noop",
    can: { resume: false, fork: false, ask: false, input: false },
    async run({ parameters }) {
      socket.write(`S ${parameters.id} ${process.hrtime.bigint()}\n`);
      return { status: "completed", exit_code: null, text: null };
    },
  };
}
