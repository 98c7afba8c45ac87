/**
 * Sync state of a config file: the version of the last comparison. `push` sends it in `If-Match`,
 * so that it overwrites no unseen change. `pull` uses the digest to detect edits.
 */
import { hash } from "node:crypto"
import { Effect, Option, Path, type Schema } from "effect"
import { withoutSchema } from "./document.ts"
import { note } from "./output.ts"
import { type SyncState, Store } from "./store.ts"
import type { Target } from "./target.ts"

/** The digest of a document, without `$schema`. */
export const digestOf = (document: Schema.Json): string =>
  hash("sha256", JSON.stringify(withoutSchema(document)), "base64url")

const nameOf = Effect.fnUntraced(function* ({ place, url }: Target, file: string) {
  const path = yield* Path.Path
  return [url, place.project, place.environment, path.resolve(file)].join(" ")
})

/** The stored sync state of a file. */
export const lastSyncState = Effect.fnUntraced(function* (target: Target, file: string) {
  const name = yield* nameOf(target, file)
  const store = yield* Store
  return Option.getOrUndefined(yield* store.syncState(name))
})

/** Stores the version that the user has now seen, with a digest if file and service agree. */
export const remember = Effect.fnUntraced(function* (
  target: Target,
  file: string,
  state: SyncState
) {
  const name = yield* nameOf(target, file)
  const store = yield* Store
  // The command has done its work: a folder of the user that cannot be written does not fail it.
  yield* store
    .setSyncState(name, state)
    .pipe(
      Effect.catch(({ message }) =>
        note(`warning: ${message} The next svc config pull cannot tell your edits.`)
      )
    )
})
