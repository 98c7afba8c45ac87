/** Gives space that deleted rows have left in databases back to the disk. */
import { fork } from "node:child_process"
import { existsSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { functionStorage as limits } from "#rpc/function-runtime-limits"

const program = fileURLToPath(new URL("compaction-process.ts", import.meta.url))

/** Databases below the folder of each kind of storage: `<kind>/<object>/<id>.sqlite`. */
const databasesOf = (data: string): ReadonlyArray<string> =>
  ["d1", "kv", "r2", "do"]
    .map((kind) => join(data, kind))
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder).map((object) => join(folder, object)))
    .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
    .filter((file) => file.endsWith(".sqlite"))

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

const numberOf = (database: DatabaseSync, pragma: string): number =>
  Number(Object.values(database.prepare(`pragma ${pragma}`).get() ?? {})[0] ?? 0)

/** Share of a database that holds nothing. */
const freeShare = (file: string): number => {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    return numberOf(database, "freelist_count") / Math.max(1, numberOf(database, "page_count"))
  } finally {
    database.close()
  }
}

/**
 * Returns the largest databases of an environment that hold much less than they occupy. Others would
 * need a copy of nearly all for little.
 */
export const sparseDatabases = (data: string): ReadonlyArray<string> =>
  databasesOf(data)
    .map((file) => ({ file, bytes: sizeOf(file) }))
    .filter(({ bytes }) => bytes >= limits.compactMinBytes)
    .toSorted((a, b) => b.bytes - a.bytes)
    .slice(0, limits.compactedMax)
    .flatMap(({ file }) => (freeShare(file) >= limits.compactFreeShare ? [file] : []))

/** Compacts databases that no process has open. Writes temporary files to `folder`. */
export const compact = (files: ReadonlyArray<string>, folder: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = fork(program, [...files], {
      env: { SQLITE_TMPDIR: folder },
      execArgv: [],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      timeout: limits.compactMillis,
      killSignal: "SIGKILL"
    })
    let problem = ""
    child.stderr?.on("data", (chunk: Buffer) => {
      if (problem.length < limits.problemMaxCharacters) problem += chunk.toString()
    })
    child.on("error", reject)
    child.once("close", (code, signal) => {
      if (code === 0) resolve()
      else reject(new Error(`The compaction ended with ${code ?? signal}: ${problem}`))
    })
  })
