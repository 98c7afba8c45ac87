/**
 * Entries of the stores of Functions: keys of key-value storage, and files. Developers list and delete them,
 * also while an environment stores so much that its code may not run.
 */
import { DateTime, Effect } from "effect"
import { CurrentEnvironment } from "#rpc/auth"
import type { FunctionsEntryPage } from "#rpc/functions/entries"
import { functions } from "#rpc/functions/limits"
import { Audit } from "../audit/service.ts"
import { FunctionsRuntime } from "./runtime.ts"
import type { EntryPage, EntryStore } from "./stored-data.ts"
import type { RequireStore } from "./stores.ts"

interface ListRequest {
  readonly params: { readonly binding: string }
  readonly query: { readonly prefix?: string; readonly cursor?: string; readonly limit?: number }
}

interface DeleteRequest {
  readonly params: { readonly binding: string }
  readonly query: { readonly name?: string; readonly prefix?: string }
}

const viewOf = ({ cursor, entries }: EntryPage): FunctionsEntryPage => ({
  entries: entries.map(({ expiresAt, ...entry }) => ({
    ...entry,
    expiresAt: expiresAt === null ? null : DateTime.formatIso(DateTime.makeUnsafe(expiresAt * 1000))
  })),
  nextCursor: cursor
})

/** Handlers of the endpoints. */
export const makeEntries = Effect.fnUntraced(function* (requireStore: RequireStore) {
  const audit = yield* Audit
  const runtime = yield* FunctionsRuntime
  const list = (type: EntryStore["type"]) =>
    Effect.fnUntraced(function* ({ params: { binding }, query }: ListRequest) {
      const environment = yield* CurrentEnvironment
      const { cursor = null, limit = functions.entriesPerPage, prefix = "" } = query
      yield* requireStore(environment, binding, type)
      const page = { prefix, cursor, limit }
      return viewOf(yield* runtime.entries(environment.environmentId, { type, binding }, page))
    })
  const remove = (type: EntryStore["type"]) =>
    Effect.fnUntraced(function* ({ params: { binding }, query }: DeleteRequest) {
      const environment = yield* CurrentEnvironment
      const { name, prefix = "" } = query
      yield* requireStore(environment, binding, type)
      const selection = name === undefined ? { prefix } : { name }
      const store = { type, binding }
      const result = yield* runtime.deleteEntries(environment.environmentId, store, selection)
      // The entry omits the names: the log outlives the data, which it must not keep.
      if (result.deleted > 0) {
        const { deleted } = result
        yield* audit.record(environment, {
          action: "functions.entriesDelete",
          target: { kind: "functionStore", id: binding },
          details: { deleted }
        })
      }
      return result
    })
  return {
    keys: list("kv"),
    deleteKeys: remove("kv"),
    files: list("files"),
    deleteFiles: remove("files")
  }
})
