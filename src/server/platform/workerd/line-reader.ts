/** Splits the output of a process into lines, each of a bounded length. */
import type { Readable } from "node:stream"

const newline = 0x0a

/** Calls `onLine` for each line; drops bytes of a line beyond `maxBytes`. */
export const readLines = (
  stream: Readable,
  maxBytes: number,
  onLine: (line: string) => void
): void => {
  let parts: Array<Buffer> = []
  let bytes = 0
  const keep = (part: Buffer): void => {
    const bytesLeft = maxBytes - bytes
    if (bytesLeft <= 0 || part.length === 0) return
    parts.push(part.subarray(0, bytesLeft))
    bytes += Math.min(bytesLeft, part.length)
  }
  const flush = (): void => {
    const line = Buffer.concat(parts).toString("utf8")
    parts = []
    bytes = 0
    if (line !== "") onLine(line)
  }
  stream.on("data", (chunk: Buffer) => {
    let start = 0
    for (
      let end = chunk.indexOf(newline);
      end !== -1;
      start = end + 1, end = chunk.indexOf(newline, start)
    ) {
      keep(chunk.subarray(start, end))
      flush()
    }
    keep(chunk.subarray(start))
  })
  stream.on("end", flush)
  // The process has ended, which its exit says.
  stream.on("error", () => undefined)
}
