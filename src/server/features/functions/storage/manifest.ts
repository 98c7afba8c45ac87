/**
 * The files of a snapshot. Each consists of parts of objects in the blob store: a large file has objects of
 * its own, small files share one. Pure.
 */
import { Schema } from "effect"
import { functionSnapshots as limits } from "#rpc/function-runtime-limits"

const Part = Schema.Struct({
  object: Schema.String,
  offset: Schema.Int,
  length: Schema.Int
})

const File = Schema.Struct({
  /** Below the directory of the environment. */
  path: Schema.String.check(Schema.isPattern(/^(?:d1|kv|r2|do)(?:\/(?!\.{1,2}(?:\/|$))[^/\0]+)+$/)),
  size: Schema.Int,
  parts: Schema.Array(Part)
})
export type SnapshotFile = typeof File.Type

const Manifest = Schema.Struct({
  format: Schema.Literal(1),
  /** Bytes of each object, by its hash. */
  objects: Schema.Record(Schema.String, Schema.Int),
  files: Schema.Array(File)
})
export type Manifest = typeof Manifest.Type

export const encodeManifest = Schema.encodeSync(Schema.fromJsonString(Manifest))
export const decodeManifest = Schema.decodeUnknownSync(Schema.fromJsonString(Manifest))

export const noFiles: Manifest = { format: 1, objects: {}, files: [] }

/** Bytes of all files. */
export const bytesOf = ({ files }: Manifest): number =>
  files.reduce((sum, { size }) => sum + size, 0)

/**
 * The files of a manifest whose objects are kept. Where most bytes of an object belong to files that are
 * gone, its remaining files are stored again in others, so that the object can be removed.
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
    (used.get(object) ?? 0) >= (objects[object] ?? 0) * limits.usedShareMin
  return new Map(
    kept
      .filter(({ parts }) => parts.every(({ object }) => isDense(object)))
      .map((file) => [file.path, file])
  )
}

/** The manifest of these files; the sizes of their objects are known. */
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
