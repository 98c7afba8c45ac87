/** Gives space of deleted rows in databases, and of values without a key, back to the disk. */
import { fork } from "node:child_process"
import { existsSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { functionStorage } from "#rpc/functions/runtime-limits"

const compactionProgram = fileURLToPath(new URL("compaction-process.ts", import.meta.url))
const keylessProgram = fileURLToPath(new URL("keyless-process.ts", import.meta.url))

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
    .filter(({ bytes }) => bytes >= functionStorage.compactMinBytes)
    .toSorted((a, b) => b.bytes - a.bytes)
    .slice(0, functionStorage.compactedMax)
    .flatMap(({ file }) => (freeShare(file) >= functionStorage.compactFreeShare ? [file] : []))

/** Runs a program beside the service with low priority; resolves with what it sends. */
const runBeside = (
  program: string,
  args: ReadonlyArray<string>,
  env: NodeJS.ProcessEnv = {}
): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const child = fork(program, [...args], {
      env,
      execArgv: [],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      timeout: functionStorage.compactMillis,
      killSignal: "SIGKILL"
    })
    let problem = ""
    let sent: unknown
    child.stderr?.on("data", (chunk: Buffer) => {
      if (problem.length < functionStorage.problemMaxCharacters) problem += chunk.toString()
    })
    child.once("message", (message) => {
      sent = message
    })
    child.on("error", reject)
    child.once("close", (code, signal) => {
      if (code === 0) resolve(sent)
      else reject(new Error(`The compaction ended with ${code ?? signal}: ${problem}`))
    })
  })

/** Compacts databases that no process has open. Writes temporary files to `folder`. */
export const compact = async (files: ReadonlyArray<string>, folder: string): Promise<void> => {
  if (files.length > 0) await runBeside(compactionProgram, files, { SQLITE_TMPDIR: folder })
}

/** Whether an environment has enough values without a key, of before a time, for a stop of its process. */
export const hasKeylessValues = async (data: string, writtenBefore: number): Promise<boolean> =>
  Number(await runBeside(keylessProgram, [data, "find", `${writtenBefore}`])) >=
  functionStorage.keylessMinBytes

/** Removes the values without a key. No process may have the data open: it could be about to write a key. */
export const removeKeylessValues = async (data: string): Promise<void> => {
  await runBeside(keylessProgram, [data, "remove", `${Infinity}`])
}
