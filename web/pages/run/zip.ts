interface Entry {
  path: string;
  bytes: Uint8Array<ArrayBuffer>;
}

/** 1 January 1980, the earliest date in the format. A run's files have no timestamps. */
const earliestDate = 33;
/** The flag that says that file names are UTF-8. */
const utf8Names = 0x800;

/** Builds an uncompressed ZIP archive. */
export function buildZip(entries: readonly Entry[]): Blob {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const directory: Uint8Array<ArrayBuffer>[] = [];
  let offset = 0;
  for (const { path, bytes } of entries) {
    const name = new TextEncoder().encode(path);
    const fileFields: Field[] = [
      [2, 20],
      [2, utf8Names],
      [2, 0],
      [2, 0],
      [2, earliestDate],
      [4, crc32(bytes)],
      [4, bytes.length],
      [4, bytes.length],
      [2, name.length],
      [2, 0],
    ];
    const local = encodeFields([[4, 0x04034b50], ...fileFields]);
    directory.push(
      encodeFields([[4, 0x02014b50], [2, 20], ...fileFields, [2, 0], [2, 0], [2, 0], [4, 0], [4, offset]]),
      name,
    );
    parts.push(local, name, bytes);
    offset += local.length + name.length + bytes.length;
  }
  const size = directory.reduce((sum, { length }) => sum + length, 0);
  const end = encodeFields([
    [4, 0x06054b50],
    [2, 0],
    [2, 0],
    [2, entries.length],
    [2, entries.length],
    [4, size],
    [4, offset],
    [2, 0],
  ]);
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
}

type Field = [bytes: 2 | 4, value: number];

function encodeFields(fields: readonly Field[]): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(fields.reduce((sum, [bytes]) => sum + bytes, 0)));
  let offset = 0;
  for (const [bytes, value] of fields) {
    if (bytes === 2) view.setUint16(offset, value, true);
    else view.setUint32(offset, value, true);
    offset += bytes;
  }
  return new Uint8Array(view.buffer);
}

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
