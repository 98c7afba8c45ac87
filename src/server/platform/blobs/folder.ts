/**
 * Blob store in a folder of the data directory, which all runners of one machine may share. It
 * writes a blob to a temporary file, syncs and renames it, so a crash leaves no half blob.
 */
import { access, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Clock, Effect } from "effect"
import { SecureRandom } from "effect/crypto"
import { sweepHourly } from "../database.ts"
import { attempt, BlobNotFound, BlobStore, BlobStoreError } from "./store.ts"

/** A temporary file that is older was left by a process that has ended. */
const staleMillis = 24 * 3600 * 1000

const isMissing = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && cause.code === "ENOENT"

/** Writes the entries of a directory to the disk: without it, a crash loses a rename. */
const syncDirectory = async (directory: string): Promise<void> => {
  const handle = await open(directory, "r")
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const keyForm = /^[A-Za-z0-9_]+(?:\/[A-Za-z0-9_][A-Za-z0-9_.-]*)+$/

/** Creates a folder that only the service can enter. Others may have to pass those around it. */
export const makeOwnFolder = async (folder: string): Promise<void> => {
  await mkdir(dirname(folder), { recursive: true })
  await mkdir(folder, { recursive: true, mode: 0o700 })
}

/** Creates temporary files in a folder, and removes stale ones. */
export const makeTemporaryFiles = Effect.fnUntraced(function* (folder: string) {
  const random = yield* SecureRandom.SecureRandom
  const clock = yield* Clock.Clock
  const namesIn = () =>
    readdir(folder).catch((cause: unknown) => {
      // The first upload creates the folder.
      if (isMissing(cause)) return []
      throw cause
    })
  const removeStale = async (now: number): Promise<void> => {
    for (const name of await namesIn()) {
      const file = join(folder, name)
      const { mtimeMs } = await stat(file)
      if (now - mtimeMs > staleMillis) await rm(file, { force: true })
    }
  }
  yield* sweepHourly("Temporary files of blobs", () =>
    Effect.orDie(attempt("remove stale files", () => removeStale(clock.currentTimeMillisUnsafe())))
  )
  return Effect.acquireRelease(
    Effect.andThen(
      attempt("create the folder of blobs", () => makeOwnFolder(folder)),
      Effect.map(random.uuidV4(), (name) => join(folder, name))
    ),
    (file) => Effect.ignore(attempt("remove a temporary file", () => rm(file, { force: true })))
  )
})

/** The store in a folder. */
export const folderStore = Effect.fnUntraced(function* (root: string) {
  const pathOf = (key: string): string => {
    if (!keyForm.test(key)) throw new Error(`${key} is not the key of a blob`)
    return join(root, key)
  }
  const put = (key: string, file: string) =>
    attempt("store a blob", async () => {
      const to = pathOf(key)
      await makeOwnFolder(dirname(to))
      const handle = await open(file, "r+")
      try {
        await handle.sync()
      } finally {
        await handle.close()
      }
      await rename(file, to)
      await syncDirectory(dirname(to))
    })
  const fetch = (key: string) =>
    Effect.tryPromise({
      try: async () => {
        const path = pathOf(key)
        await access(path)
        return path
      },
      catch: (cause) =>
        isMissing(cause)
          ? new BlobNotFound({ key })
          : new BlobStoreError({ operation: "read a blob", cause })
    })
  return BlobStore.of({
    temporaryFile: yield* makeTemporaryFiles(join(root, "temporary")),
    put,
    archive: put,
    fetch,
    fetchArchived: fetch,
    dropCopy: () => Effect.succeed(false),
    remove: (keys) =>
      attempt("remove blobs", async () => {
        for (const key of keys) await rm(pathOf(key), { force: true })
      }),
    removeAll: (environmentId) =>
      attempt("remove the blobs of an environment", () =>
        rm(pathOf(`${environmentId}/all`).replace(/all$/, ""), { recursive: true, force: true })
      )
  })
})
