import { extname } from "node:path";

/**
 * Goes by the file extension, or by the content if the extension is unknown. The result has no charset, because the
 * coordinator adds it.
 */
export function chooseMediaType(path: string, isText: boolean): string {
  return byExtension.get(extname(path).toLowerCase()) ?? (isText ? "text/plain" : "application/octet-stream");
}

const byExtension = new Map<string, string>([
  [".txt", "text/plain"],
  [".log", "text/plain"],
  [".md", "text/markdown"],
  [".html", "text/html"],
  [".htm", "text/html"],
  [".css", "text/css"],
  [".csv", "text/csv"],
  [".js", "text/javascript"],
  [".mjs", "text/javascript"],
  [".xml", "application/xml"],
  [".json", "application/json"],
  [".jsonl", "application/jsonl"],
  [".yaml", "application/yaml"],
  [".yml", "application/yaml"],
  [".pdf", "application/pdf"],
  [".zip", "application/zip"],
  [".gz", "application/gzip"],
  [".tar", "application/x-tar"],
  [".wasm", "application/wasm"],
  [".svg", "image/svg+xml"],
  [".png", "image/png"],
  [".jpg", "image/jpeg"],
  [".jpeg", "image/jpeg"],
  [".gif", "image/gif"],
  [".webp", "image/webp"],
  [".ico", "image/x-icon"],
  [".mp3", "audio/mpeg"],
  [".wav", "audio/wav"],
  [".mp4", "video/mp4"],
  [".webm", "video/webm"],
  [".docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"],
  [".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"],
  [".pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"],
]);
