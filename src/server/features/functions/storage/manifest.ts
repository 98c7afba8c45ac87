/**
 * Files of a snapshot. Each consists of parts of objects in the blob store: a large file has its own
 * objects, small files share one. Pure.
 */
import { Schema } from "effect"
import { functionSnapshots } from "#rpc/functions/runtime-limits"

const Part = Schema.Struct({
  object: Schema.String,
  offset: Schema.Int,
  length: Schema.Int
})

const File = Schema.Struct({
  /** Path below the directory of the environment. */
  path: Schema.String.check(Schema.isPattern(/^(?:d1|kv|r2|do)(?:\/(?!\.{1,2}(?:\/|$))[^/\0]+)+$/)),
  size: Schema.Int,
  parts: Schema.Array(Part)
})
export type SnapshotFile = typeof File.Type

const Manifest = Schema.Struct({
  format: Schema.Literal(1),
  /** Size in bytes of each object, by its hash. */
  objects: Schema.Record(Schema.String, Schema.Int),
  files: Schema.Array(File)
})
export type Manifest = typeof Manifest.Type

export const encodeManifest = Schema.encodeSync(Schema.fromJsonString(Manifest))
export const decodeManifest = Schema.decodeUnknownSync(Schema.fromJsonString(Manifest))

export const noFiles: Manifest = { format: 1, objects: {}, files: [] }

/** Returns the bytes of all files. */
export const bytesOf = ({ files }: Manifest): number =>
  files.reduce((sum, { size }) => sum + size, 0)

/**
 * Returns the files of a manifest whose objects remain. Excludes objects whose bytes mostly belong to
 * removed files. Their remaining files go to other objects, so that the store can remove the sparse ones.
 */
export const reusable = (
  { files, objects }: Manifest,
  isKept: (path: string) => boolean
): ReadonlyMap<string, SnapshotFile> => {
  const kept = files.filter(({ path }) => isKept(path))
  const used = new Map<string, number>()
  for (const { parts } of kept) {
    for (const { length, object } of parts) used.set(object, (used.get(object) ?? 0) + length)
  }
  const isDense = (object: string) =>
    (used.get(object) ?? 0) >= (objects[object] ?? 0) * functionSnapshots.usedShareMin
  return new Map(
    kept
      .filter(({ parts }) => parts.every(({ object }) => isDense(object)))
      .map((file) => [file.path, file])
  )
}

/** Returns the manifest of these files. The sizes of their objects must be known. */
export const manifestOf = (
  files: ReadonlyArray<SnapshotFile>,
  sizes: Readonly<Record<string, number>>
): Manifest => {
  const named = new Set(files.flatMap(({ parts }) => parts.map(({ object }) => object)))
  return {
    format: 1,
    objects: Object.fromEntries(Object.entries(sizes).filter(([object]) => named.has(object))),
    files
  }
}
