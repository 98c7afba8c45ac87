/**
 * Which version of the config a file was last seen against: what `push` names in `If-Match`, so that
 * nobody's change is overwritten unseen, and what tells `pull` whether the file was edited since.
 * Nothing is remembered for a key out of the environment (`SVC_SECRET_KEY`): CI begins anew each time.
 */
import { hash } from "node:crypto"
import { Effect, Option, Path, type Schema } from "effect"
import { withoutSchema } from "./document.ts"
import { type SyncState, Store } from "./store.ts"
import type { Target } from "./target.ts"

/** What tells one document from another. */
export const digestOf = (document: Schema.Json): string =>
  hash("sha256", JSON.stringify(withoutSchema(document)), "base64url")

const nameOf = Effect.fnUntraced(function* ({ place, url }: Target, file: string) {
  const path = yield* Path.Path
  return place === undefined
    ? undefined
    : [url, place.project, place.environment, path.resolve(file)].join(" ")
})

/** What was last seen of the config that a file stands for. */
export const lastSyncState = Effect.fnUntraced(function* (target: Target, file: string) {
  const name = yield* nameOf(target, file)
  const store = yield* Store
  return name === undefined ? undefined : Option.getOrUndefined(yield* store.syncState(name))
})

/** Remembers the version that the user has now seen; a digest, that file and service agree. */
export const remember = Effect.fnUntraced(function* (
  target: Target,
  file: string,
  state: SyncState
) {
  const name = yield* nameOf(target, file)
  const store = yield* Store
  if (name !== undefined) yield* store.setSyncState(name, state)
})
