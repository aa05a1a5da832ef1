import type { Command, CommandFault, ProcessEnd, Limits } from "../model/process.ts";
import type { StopReason } from "../model/states.ts";
import { findExecutable } from "./find-executable.ts";

// Each function creates the fault for one kind of failed command. Messages state the cause, then what to do about it.

export function notFound(name: string): CommandFault {
  const reason = name.includes("/") ? "The file does not exist" : "It is not on PATH";
  return {
    code: "DROVER-EXE-001",
    message: `Command not found: ${name}. ${reason}: check the spelling, or install it.`,
  };
}

export function notExecutable(name: string, reason = "It is a directory or has no execute permission"): CommandFault {
  return {
    code: "DROVER-EXE-005",
    message: `Not executable: ${name}. ${reason}: try chmod +x, or run it with its interpreter.`,
  };
}

export function isolationMissing(level: string, reason: string): CommandFault {
  return {
    code: "DROVER-EXE-007",
    message: `Isolation "${level}" is not available on this host: ${reason}.${seeDoctor.isolation}`,
  };
}

export function cannotKeepLeftovers(level: "pid" | "sandbox"): CommandFault {
  return {
    code: "DROVER-EXE-007",
    message: `Isolation "${level}" cannot keep leftovers, because all its processes end with the command. Use isolation "auto", "group" or "none", or set leftovers to "kill".`,
  };
}

export function limitMissing(limit: keyof Limits, reason: string): CommandFault {
  return {
    code: "DROVER-EXE-008",
    message: `The limit on ${limitLabels[limit].name} cannot be applied on this host: ${reason}.${seeDoctor.limit}`,
    limit,
  };
}

export function limitExceeded(
  limit: keyof Limits,
  value: number | undefined,
  { actual, subject = "command" }: { actual?: number; subject?: "command" | "run" } = {},
): CommandFault {
  const { name, unit } = limitLabels[limit];
  const allowed = value === undefined ? "" : ` (${value}${unit})`;
  const used = actual === undefined ? "" : `: it used at least ${actual}${unit}`;
  return {
    code: "DROVER-EXE-009",
    message: `The ${subject} exceeded its limit on ${name}${allowed}${used}. Raise the limit, or reduce its usage.`,
    limit,
  };
}

/** Returns the message without the advice to run drover doctor, for use by doctor itself. */
export function stripAdvice({ message }: CommandFault): string {
  const advice = Object.values(seeDoctor).find((text) => message.endsWith(text));
  return advice === undefined ? message : message.slice(0, -advice.length);
}

const seeDoctor = {
  isolation: ' Run drover doctor to list the available levels, or use "auto".',
  limit: " Run drover doctor for details, or omit the limit.",
};

const limitLabels: Record<keyof Limits, { name: string; unit: string }> = {
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
    message: `The command wrote more than ${maxBytes} bytes and was stopped. Raise the output limit, or allow truncated output.`,
    limit: "output",
  };
}

export function cannotStart(reason: string): CommandFault {
  return { code: "DROVER-EXE-010", message: `The process could not be started: ${reason}.` };
}

export function directoryReplaced(directory: string): CommandFault {
  return cannotStart(
    `its working directory ${directory} was replaced by a link or removed; find out which process did that, then try again`,
  );
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
        "The command exceeded its output limit and was stopped. Raise the output limit, or allow truncated output.",
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
    message: `The command was stopped before it finished (${reason}). Run it again if this was not intended.`,
  };
}

export function processFailed({ exitCode, signal }: Pick<ProcessEnd, "exitCode" | "signal">): CommandFault {
  const how = signal === null ? `exited with code ${exitCode}` : `was killed by ${signal}`;
  return { code: "DROVER-EXE-003", message: `The command ${how}. Check its output.` };
}

/** Explains why the system refused to execute a command, from its errno and a check of the file. */
export function execRefused(errno: string, command: Command, path: string | undefined): CommandFault {
  const name = command.executable;
  switch (errno) {
    case "ENOENT":
    case "ENOTDIR": {
      const lookup = findExecutable(name, path, command.workingDirectory ?? process.cwd());
      if ("found" in lookup)
        return notExecutable(name, `${lookup.found} exists, but its interpreter (the #! line, or the loader) does not`);
      return lookup.missing === "nowhere" ? notFound(name) : notExecutable(name);
    }
    case "EACCES":
    case "EPERM":
      return notExecutable(name);
    case "ENOEXEC":
      return notExecutable(name, "It is neither a program for this machine nor a script that starts with #!");
    case "E2BIG":
      return {
        code: "DROVER-EXE-006",
        message:
          "The arguments and variables are longer than this system allows. Pass large values in a file or on stdin.",
      };
    case "EAGAIN":
    case "ENOMEM":
    case "ENFILE":
      return cannotStart(
        `the system has too few processes, memory or descriptors left (${errno}); try again under less load`,
      );
    case "EMFILE":
      return cannotStart(
        "Drover has reached its limit of open files (EMFILE); raise `ulimit -n`, or run fewer commands at once",
      );
    default:
      return cannotStart(`executing ${name} failed with ${errno}`);
  }
}
