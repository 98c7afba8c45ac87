/** Entries of the stores of Functions, which are keys of key-value storage and files: their list and deletion. */
import { Schema } from "effect"
import { integerText } from "../pages.ts"
import { functions } from "./limits.ts"

/** An entry. Key-value storage knows when a key expires, a store of files how large a file is. */
const Entry = Schema.Struct({
  name: Schema.String,
  sizeBytes: Schema.NullOr(Schema.Finite),
  expiresAt: Schema.NullOr(Schema.String)
})

export const FunctionsEntryPage = Schema.Struct({
  entries: Schema.Array(Entry),
  nextCursor: Schema.NullOr(Schema.String)
}).annotate({
  identifier: "FunctionsEntryPage",
  description:
    "Keys of key-value storage, or files, in order of their names. `sizeBytes` is null for keys, `expiresAt` " +
    "for files and for keys that do not expire."
})
export type FunctionsEntryPage = typeof FunctionsEntryPage.Type

export const FunctionsEntriesDeleted = Schema.Struct({
  deleted: Schema.Int,
  more: Schema.Boolean
}).annotate({
  identifier: "FunctionsEntriesDeleted",
  description: `How many entries are deleted, at most ${functions.entriesPerDelete}, and whether there are more.`
})
export type FunctionsEntriesDeleted = typeof FunctionsEntriesDeleted.Type

/** A name, or the beginning of names. A file may have an empty name; an empty prefix is that of all. */
const EntryName = Schema.String.check(Schema.isMaxLength(functions.entryNameMaxCharacters))

const Cursor = Schema.String.check(
  Schema.isPattern(/^[\w+/=.-]{1,4096}$/, {
    message: "Expected the nextCursor of a previous response"
  })
)

export const entryQuery = {
  prefix: Schema.optionalKey(EntryName),
  cursor: Schema.optionalKey(Cursor),
  limit: Schema.optionalKey(integerText(1, functions.entriesPerPage))
}

/** Exactly one of both: a deletion of everything has to be said. */
export const deletedEntryQuery = Schema.Struct({
  name: Schema.optionalKey(EntryName),
  prefix: Schema.optionalKey(EntryName)
}).check(
  Schema.makeFilter(({ name, prefix }) =>
    (name === undefined) === (prefix === undefined)
      ? "Expected either name or prefix; an empty prefix deletes all"
      : undefined
  )
)
