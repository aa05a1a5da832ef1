import { join } from "node:path";
import { openConfined } from "../../tools/confined-folder.ts";

/** A file of ours in a folder that processes of the run can write too: no link in its place, or the folder's, is followed. */
export async function writePrivate(directory: string, name: string, text: string): Promise<string> {
  const folder = await openConfined(directory);
  try {
    const bytes = Buffer.from(name);
    await folder.remove(bytes).catch((error: unknown) => {
      if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
    });
    const file = await folder.create(bytes, 0o600);
    try {
      await file.writeFile(text);
    } finally {
      await file.close();
    }
    return join(directory, name);
  } finally {
    await folder.close();
  }
}
