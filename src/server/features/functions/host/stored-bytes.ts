/**
 * Bytes that an environment occupies on disk, as the file system counts them: whatever has written
 * them, and whether a name still leads to them.
 */
import { spawn } from "node:child_process"
import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs"
import { join } from "node:path"
import { functionStorage } from "#rpc/functions/runtime-limits"

const blockBytes = 512

/** Bytes of an entry. An empty file occupies an entry of the file system, of which it has few. */
const entryBytes = (blocks: number): number =>
  Math.max(functionStorage.entryMinBytes, blocks * blockBytes)

/**
 * Sums the entries below a directory by a program beside the service, since a scan of many files would
 * delay calls. It stops once the sum exceeds `enoughBytes`. Files that disappear meanwhile count as none.
 */
const bytesBelow = (find: string, directory: string, enoughBytes: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = spawn(find, [directory, "-printf", "%b\n"], {
      stdio: ["ignore", "pipe", "ignore"],
      timeout: functionStorage.measureTimeoutMillis,
      killSignal: "SIGKILL"
    })
    let bytes = 0
    let rest = ""
    child.stdout.on("data", (chunk: Buffer) => {
      const lines = (rest + chunk.toString("latin1")).split("\n")
      rest = lines.pop() ?? ""
      for (const line of lines) bytes += entryBytes(Number(line))
      if (bytes > enoughBytes) child.kill("SIGKILL")
    })
    child.on("error", reject)
    child.once("close", () => resolve(bytes))
  })

const deletedMark = " (deleted)"

/** Bytes of files that have no name any more, which a process keeps open. */
const heldBytes = (pid: number, directory: string): number => {
  let bytes = 0
  try {
    for (const name of readdirSync(`/proc/${pid}/fd`)) {
      const path = join(`/proc/${pid}/fd`, name)
      const target = readlinkSync(path)
      if (!target.startsWith(directory) || !target.endsWith(deletedMark)) continue
      bytes += statSync(path).blocks * blockBytes
    }
  } catch {
    // It has ended, or root lacks the right to look into processes of other users.
  }
  return bytes
}

/** Returns the bytes of an environment, or any number above `enoughBytes`. */
export const storedBytes = async (
  find: string,
  directory: string,
  pid: number | undefined,
  enoughBytes: number
): Promise<number> => {
  const held = pid === undefined ? 0 : heldBytes(pid, directory)
  return held + (await bytesBelow(find, directory, enoughBytes))
}

/** Bytes that a process has passed to the system so far; undefined if they cannot be read. */
export const writtenBytes = (pid: number): number | undefined => {
  try {
    return Number(/^wchar: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, "latin1"))?.[1] ?? 0)
  } catch {
    return undefined
  }
}
