/** Manifest of a backup, `manifest.json`. */
import { hash } from "node:crypto"
import { Schema } from "effect"
import { SequenceValue, TableShape } from "#sql/backup"

/** The version of the format. The first had neither checksums nor digests of rows. */
const format = 2

/** A name that stays in its folder. */
const Name = Schema.String.check(Schema.isPattern(/^[\w-]+$/))

export const Manifest = Schema.Struct({
  format: Schema.Literals([1, format]),
  /** The release that wrote it. */
  version: Schema.String,
  createdAt: Schema.String,
  /** The newest migration of the database. */
  migration: Schema.Int,
  tables: Schema.Array(
    Schema.Struct({
      ...TableShape.fields,
      name: Name,
      rows: Schema.Int,
      digest: Schema.optionalKey(Schema.String)
    })
  ),
  sequences: Schema.Array(SequenceValue),
  /** An id of the master key; absent if no key was at hand, and none had encrypted anything. */
  masterKey: Schema.optionalKey(Schema.Struct({ id: Schema.String, included: Schema.Boolean })),
  /** Files of hosted apps; absent if they are in a bucket. */
  blobs: Schema.optionalKey(Schema.Int),
  /** Owner of the data of functions, by environment, where each has a user of its own. */
  functions: Schema.Array(Schema.Struct({ environmentId: Name, owner: Schema.Int }))
})
export type Manifest = typeof Manifest.Type
export const manifestFormat = format

export const manifestFile = "manifest.json"
export const sumsFile = "sha256sums"
export const databaseFolder = "database"
export const dataFolder = "data"
export const keyFile = "master.key"

/** Files of the data directory that go along, beside the folders. */
export const keptFiles = ["dev-keys.json"] as const

/** Returns an id that does not reveal the key. */
export const keyIdOf = (key: string): string =>
  hash("sha256", Buffer.from(key.trim(), "base64"), "base64url").slice(0, 8)
