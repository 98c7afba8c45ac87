/** Writes the files of a snapshot into an empty directory. */
import { mkdir, open, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { functionSnapshots } from "#rpc/functions/runtime-limits"
import type { EnvironmentId } from "#rpc/ids"
import { attempt } from "#server/platform/blobs/store"
import type { Manifest } from "./manifest.ts"
import type { Objects } from "./objects.ts"

/** Destination of bytes of an object. */
interface Piece {
  readonly file: string
  readonly position: number
  readonly offset: number
  readonly length: number
}

/** Returns the pieces of each object. */
const piecesOf = (directory: string, { files }: Manifest): ReadonlyMap<string, Array<Piece>> => {
  const pieces = new Map<string, Array<Piece>>()
  for (const { parts, path } of files) {
    let position = 0
    for (const { length, object, offset } of parts) {
      const known = pieces.get(object) ?? []
      known.push({ file: join(directory, path), position, offset, length })
      pieces.set(object, known)
      position += length
    }
  }
  return pieces
}

const write = async (bytes: Buffer, { file, length, offset, position }: Piece): Promise<void> => {
  const handle = await open(file, "r+")
  try {
    await handle.write(bytes, offset, length, position)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Creates empty files for writes of their pieces in any order. */
const prepare = async (directory: string, { files }: Manifest): Promise<void> => {
  await rm(directory, { recursive: true, force: true })
  await mkdir(directory, { recursive: true, mode: 0o700 })
  for (const { path } of files) {
    const file = join(directory, path)
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    await (await open(file, "wx", 0o600)).close()
  }
}

/** Writes all files of a manifest; fails if an object is missing or corrupt. */
export const restoreFiles = Effect.fnUntraced(function* (
  objects: Pick<Objects, "read">,
  environmentId: EnvironmentId,
  manifest: Manifest,
  directory: string
) {
  yield* attempt("prepare the data of functions", () => prepare(directory, manifest))
  yield* Effect.forEach(
    piecesOf(directory, manifest),
    Effect.fnUntraced(function* ([object, pieces]) {
      const bytes = yield* objects.read(environmentId, object)
      yield* attempt("write the data of functions", async () => {
        for (const piece of pieces) await write(bytes, piece)
      })
    }),
    { concurrency: functionSnapshots.objectsAtOnce, discard: true }
  )
})
