/**
 * Closes the sockets of revoked keys, over both endpoints: 4001 `key_revoked`. When the node may
 * have missed changes, it looks up all keys with open sockets, many in one statement.
 */
import { Array, Effect, Layer, Queue, Schedule } from "effect"
import { InvalidKey } from "#rpc/errors/codes"
import { Invalidation } from "#server/platform/invalidation"
import { forEachInSlices } from "#server/platform/slices"
import { Environments } from "#server/features/projects/environments"
import { Gateway } from "./gateway.ts"

/** Keys that one statement looks up. */
const keysPerStatement = 1000
/** The pause before a look-up that failed is repeated: an unknown key counts as neither. */
const retryMillis = 250

const revoked = new InvalidKey({ message: "This key has been revoked." })

export const KeyChanges = Layer.effectDiscard(
  Effect.gen(function* () {
    const { byKey, closeRevoked: close } = yield* Gateway
    const environments = yield* Environments
    const invalidation = yield* Invalidation
    const wake = yield* Queue.dropping<void>(1)
    /** Hashes of keys that may have been revoked. */
    let changed = new Set<string>()

    yield* invalidation.subscribe(({ id, kind }) =>
      Effect.sync(() => {
        if (kind === "key" && byKey.has(id)) changed.add(id)
        else if (kind === "everything") changed = new Set(byKey.keys)
        if (changed.size > 0) Queue.offerUnsafe(wake, undefined)
      })
    )

    const closeRevoked = Effect.fnUntraced(function* (hashes: ReadonlyArray<string>) {
      const live = yield* environments.liveKeys(hashes)
      const sockets = hashes.filter((hash) => !live.has(hash)).flatMap((hash) => byKey.get(hash))
      yield* forEachInSlices(sockets, (socket) => close(socket, revoked))
    })

    const checkAll = (hashes: ReadonlyArray<string>) =>
      closeRevoked(hashes).pipe(
        Effect.tapDefect((defect) => Effect.logError("Failed to look up keys", defect)),
        Effect.sandbox,
        Effect.retry(Schedule.spaced(retryMillis)),
        Effect.orDie
      )

    const checkChanged = Effect.suspend(() => {
      const hashes = Array.fromIterable(changed)
      changed = new Set()
      return Effect.forEach(Array.chunksOf(hashes, keysPerStatement), checkAll, { discard: true })
    })

    yield* Queue.take(wake).pipe(Effect.andThen(checkChanged), Effect.forever, Effect.forkScoped)
  })
)
