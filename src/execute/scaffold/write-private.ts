import { join } from "node:path";
import { openConfinedDirectory } from "../../tools/confined-directory.ts";

/** Writes a private file into a directory that processes of the run can write to. Follows no link at either path. */
export async function writePrivate(directory: string, name: string, text: string): Promise<string> {
  const confined = await openConfinedDirectory(directory);
  try {
    const bytes = Buffer.from(name);
    await confined.remove(bytes).catch((error: unknown) => {
      if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
    });
    const file = await confined.create(bytes, 0o600);
    try {
      await file.writeFile(text);
    } finally {
      await file.close();
    }
    return join(directory, name);
  } finally {
    await confined.close();
  }
}
