/**
 * `/v1/social/blocks`. A change acts at once in what is alive, on every node. The answer for a player who
 * does not exist, or is of another environment, takes the same statements.
 */
import { DateTime, Effect } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { Api } from "#rpc/api"
import { CurrentPlayer } from "#rpc/auth"
import { InvalidRequest, TooManyBlocks } from "#rpc/errors/codes"
import type { PlayerId } from "#rpc/ids"
import { http as pages } from "#rpc/limits"
import { BlockRepository, type BlockRow } from "#sql/blocks"
import { apiGroup } from "#server/platform/api-group"
import { pageOf } from "#server/platform/pages"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { blockView } from "./view.ts"

const cursorOf = ({ blockedId, createdAt }: BlockRow): string =>
  `${DateTime.toEpochMillis(createdAt)}.${blockedId}`

const positionOf = (cursor: string) => {
  const [millis = "", blockedId = ""] = cursor.split(".")
  return { createdAt: DateTime.makeUnsafe(Number(millis)), blockedId }
}

const itself = () => {
  const message = "A player cannot block itself"
  return new InvalidRequest({ message, details: { issues: [{ path: "playerId", message }] } })
}

/** Adds and ends blocks. A change and its announcement to all nodes are one transaction. */
const makeChanges = Effect.gen(function* () {
  const repository = yield* BlockRepository
  const sql = yield* SqlClient.SqlClient
  const statuses = yield* PlayerStatusCache
  const announced = Effect.fnUntraced(
    function* <A>(change: Effect.Effect<A>) {
      const { environmentId, playerId } = yield* CurrentPlayer
      const changed = yield* change
      yield* statuses.invalidate(environmentId, playerId)
      return changed
    },
    (change) => Effect.catchIf(sql.withTransaction(change), SqlError.isSqlError, Effect.die)
  )
  return {
    add: Effect.fnUntraced(function* (blockedId: PlayerId) {
      const { environmentId, playerId } = yield* CurrentPlayer
      if (blockedId === playerId) return yield* itself()
      const now = yield* DateTime.now
      const isAdded = yield* announced(repository.add({ environmentId, playerId, blockedId, now }))
      return isAdded ? {} : yield* new TooManyBlocks()
    }),
    remove: Effect.fnUntraced(function* (blockedId: PlayerId) {
      const { environmentId, playerId } = yield* CurrentPlayer
      yield* announced(repository.remove({ environmentId, playerId, blockedId }))
      return {}
    })
  }
})

export const BlocksHttp = apiGroup(
  Api,
  "blocks",
  Effect.fn(function* (handlers) {
    const repository = yield* BlockRepository
    const { add, remove } = yield* makeChanges
    return handlers.handleAll({
      list: Effect.fnUntraced(function* ({ query }) {
        const { environmentId, playerId } = yield* CurrentPlayer
        const { cursor, limit = pages.pageDefault } = query
        const after = cursor === undefined ? null : positionOf(cursor)
        const found = yield* repository.page({ environmentId, playerId, after, limit: limit + 1 })
        const { nextCursor, rows } = pageOf(found, limit, cursorOf)
        return { blocks: rows.map(blockView), nextCursor }
      }),
      add: ({ params }) => add(params.playerId),
      remove: ({ params }) => remove(params.playerId)
    })
  })
)
