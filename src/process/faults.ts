import type { Command, CommandFault, Ended, Limits } from "../model/process.ts";
import type { StopReason } from "../model/states.ts";
import { findExecutable } from "./lookup.ts";

// The messages for every command fault: the cause, then what to do about it.

export function notFound(name: string): CommandFault {
  const where = name.includes("/") ? "There is no such file" : "It is in no directory of PATH";
  return {
    code: "DROVER-EXE-001",
    message: `Command not found: ${name}. ${where}: check its spelling, or install it.`,
  };
}

export function notExecutable(name: string, why = "It is a directory or has no execute permission"): CommandFault {
  return { code: "DROVER-EXE-005", message: `Not executable: ${name}. ${why}: try chmod +x, or name its interpreter.` };
}

export function isolationMissing(level: string, why: string): CommandFault {
  return {
    code: "DROVER-EXE-007",
    message: `Isolation "${level}" is not available on this host: ${why}.${seeDoctor.isolation}`,
  };
}

export function cannotKeep(level: "pid" | "sandbox"): CommandFault {
  return {
    code: "DROVER-EXE-007",
    message: `Isolation "${level}" cannot keep leftovers, because all its processes end with the command. Use isolation "auto", "group" or "none", or let leftovers be killed.`,
  };
}

export function limitMissing(limit: keyof Limits, why: string): CommandFault {
  return {
    code: "DROVER-EXE-008",
    message: `The limit on ${limitWords[limit].name} cannot be applied on this host: ${why}.${seeDoctor.limit}`,
    limit,
  };
}

export function limitExceeded(
  limit: keyof Limits,
  value: number | undefined,
  { found, whose = "command" }: { found?: number; whose?: "command" | "run" } = {},
): CommandFault {
  const { name, unit } = limitWords[limit];
  const most = value === undefined ? "" : ` (${value}${unit})`;
  const seen = found === undefined ? "" : `: ${found}${unit} and perhaps more were found`;
  return {
    code: "DROVER-EXE-009",
    message: `The ${whose} went over its limit on ${name}${most}${seen}. Raise the limit, or make it need less.`,
    limit,
  };
}

/** The message without the advice to run doctor, for use by doctor itself. */
export function causeOf({ message }: CommandFault): string {
  const advice = Object.values(seeDoctor).find((words) => message.endsWith(words));
  return advice === undefined ? message : message.slice(0, -advice.length);
}

const seeDoctor = {
  isolation: ' Run drover doctor to see what is, or ask for "auto".',
  limit: " Run drover doctor, or leave the limit out.",
};

const limitWords: Record<keyof Limits, { name: string; unit: string }> = {
  cpuSeconds: { name: "CPU time", unit: " s" },
  memoryBytes: { name: "memory", unit: " bytes" },
  processes: { name: "processes", unit: "" },
  openFiles: { name: "open files", unit: "" },
  fileSizeBytes: { name: "file size", unit: " bytes" },
  diskBytes: { name: "disk space", unit: " bytes" },
  files: { name: "files", unit: "" },
};

export function outputTooLarge(maxBytes: number): CommandFault {
  return {
    code: "DROVER-EXE-004",
    message: `The command wrote more than ${maxBytes} bytes and was stopped. Raise the output limit, or let the output be truncated.`,
    limit: "output",
  };
}

export function cannotStart(why: string): CommandFault {
  return { code: "DROVER-EXE-010", message: `The process could not be started: ${why}.` };
}

export function stoppedFault(reason: StopReason, { timeoutMs }: Command): CommandFault {
  if (reason === "timeout") {
    const after = timeoutMs === undefined ? "" : ` after ${timeoutMs / 1000} s`;
    return {
      code: "DROVER-EXE-002",
      message: `Timed out${after}; the command and all its processes were killed. Increase the timeout, or find out why it hangs.`,
    };
  }
  if (reason === "output_limit") {
    return {
      code: "DROVER-EXE-004",
      message:
        "The command exceeded its output limit and was stopped. Raise the output limit, or let the output be truncated.",
      limit: "output",
    };
  }
  if (reason === "disk_limit") {
    return {
      code: "DROVER-EXE-009",
      message: "The run exceeded its disk limit and was stopped. Raise the limit, or reduce what it writes.",
    };
  }
  return {
    code: "DROVER-EXE-011",
    message: `Stopped before it finished (${reason}). Run it again if this was not intended.`,
  };
}

export function processFailed({ exitCode, signal }: Pick<Ended, "exitCode" | "signal">): CommandFault {
  const how = signal === null ? `exited with code ${exitCode}` : `was ended by ${signal}`;
  return { code: "DROVER-EXE-003", message: `The command ${how}. Its output says more.` };
}

/** Explains why the system refused to execute a command, from its errno and a check of the file. */
export function execRefused(errno: string, command: Command, path: string | undefined): CommandFault {
  const name = command.executable;
  switch (errno) {
    case "ENOENT":
    case "ENOTDIR": {
      const seen = findExecutable(name, path, command.workingDirectory ?? process.cwd());
      if ("found" in seen)
        return notExecutable(
          name,
          `${seen.found} is there, but its interpreter (the #! line, or the loader) is missing`,
        );
      return seen.missing === "nowhere" ? notFound(name) : notExecutable(name);
    }
    case "EACCES":
    case "EPERM":
      return notExecutable(name);
    case "ENOEXEC":
      return notExecutable(name, "It is neither a program of this machine nor a script that begins with #!");
    case "E2BIG":
      return {
        code: "DROVER-EXE-006",
        message:
          "The arguments and variables are longer than this system allows. Hand large values over in a file or on stdin.",
      };
    case "EAGAIN":
    case "ENOMEM":
    case "ENFILE":
      return cannotStart(
        `the system is short of processes, memory or descriptors (${errno}); try again when there is less load`,
      );
    case "EMFILE":
      return cannotStart(
        "Drover has as many files open as it may (EMFILE); raise `ulimit -n`, or let fewer commands run at once",
      );
    default:
      return cannotStart(`the system answered ${errno} to executing ${name}`);
  }
}
