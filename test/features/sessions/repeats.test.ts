/** Refreshes with an `Idempotency-Key`: lost answers, thieves and owners in every order, and ends of sessions. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { type EnvironmentId, type PlayerId, SanctionId } from "#rpc/ids"
import { Sessions } from "#server/features/sessions/service"
import { AccessTokens } from "#server/features/sessions/tokens"
import { coreOfNode, makeTenants, SharedDatabase } from "../../support/http-stack.ts"
import { masterKeyOf } from "../../support/master-keys.ts"
import { sampleSize } from "../../support/security/sizes.ts"

const Core = coreOfNode().pipe(Layer.provideMerge(SharedDatabase.layer))

const keyOf = (name: string): string => `${name}-key-of-128-random-bits`

const newGuest = Effect.gen(function* () {
  const sessions = yield* Sessions
  const { development } = yield* makeTenants
  const { environmentId } = development
  const { player, refreshToken } = yield* sessions.createGuest(environmentId, undefined)
  return { environmentId, playerId: player.id, refreshToken }
})

/** The next refresh token, or the error code. */
const refreshed = Effect.fnUntraced(function* (
  environmentId: EnvironmentId,
  token: string,
  key?: string
) {
  const sessions = yield* Sessions
  return yield* Effect.match(sessions.refresh(environmentId, token, key), {
    onSuccess: ({ refreshToken }) => refreshToken,
    onFailure: ({ _tag }) => _tag
  })
})

const sanctionOf = (playerId: PlayerId) => SanctionId.make(`snc_${playerId.slice(3)}`)

const ban = Effect.fnUntraced(function* (environmentId: EnvironmentId, playerId: PlayerId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    insert into sanctions (id, environment_id, player_id, reason, created_at)
    values (${sanctionOf(playerId)}, ${environmentId}, ${playerId}, 'test', now())`
  yield* sql`update sessions set revoked_at = now() where player_id = ${playerId}`
})

layer(Core)("a refresh whose answer was lost", (it) => {
  it.effect("gives the same refresh token again, with another access token, after any time", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const tokens = yield* AccessTokens
      const { environmentId, playerId, refreshToken } = yield* newGuest
      const refresh = sessions.refresh(environmentId, refreshToken, keyOf("own"))
      const first = yield* refresh
      for (const wait of ["5 seconds", "11 seconds", "20 minutes"] as const) {
        yield* TestClock.adjust(wait)
        const again = yield* refresh
        assert.strictEqual(again.refreshToken, first.refreshToken)
        assert.deepStrictEqual(again.player, first.player)
        const caller = yield* tokens.verify(again.accessToken, environmentId)
        assert.strictEqual(caller.playerId, playerId)
      }
      assert.match(yield* refreshed(environmentId, first.refreshToken), /^rt_/)
    })
  )

  it.effect("refuses the repeat once the new refresh token was presented", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const { environmentId, refreshToken } = yield* newGuest
      const next = yield* refreshed(environmentId, refreshToken, keyOf("own"))
      yield* sessions.authenticate(environmentId, next)
      assert.strictEqual(
        yield* refreshed(environmentId, refreshToken, keyOf("own")),
        "refresh_race"
      )
      yield* TestClock.adjust("10 seconds")
      const late = yield* refreshed(environmentId, refreshToken, keyOf("own"))
      assert.strictEqual(late, "session_revoked")
      assert.strictEqual(yield* refreshed(environmentId, next), "session_revoked")
    })
  )

  it.effect("keeps to the race and to the end of the chain with another key, or with none", () =>
    Effect.gen(function* () {
      for (const key of [undefined, keyOf("other")]) {
        const { environmentId, refreshToken } = yield* newGuest
        const next = yield* refreshed(environmentId, refreshToken, keyOf("own"))
        assert.strictEqual(yield* refreshed(environmentId, refreshToken, key), "refresh_race")
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual(yield* refreshed(environmentId, refreshToken, key), "session_revoked")
        const repeat = yield* refreshed(environmentId, refreshToken, keyOf("own"))
        assert.strictEqual(repeat, "session_revoked")
        assert.strictEqual(yield* refreshed(environmentId, next), "session_revoked")
      }
    })
  )

  it.effect("gives nothing to a repeat after a logout, a revocation, a ban or a deletion", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const sql = yield* SqlClient.SqlClient
      const ends = {
        session_revoked: [
          ({ environmentId, refreshToken }) => sessions.logout(environmentId, refreshToken),
          ({ environmentId, playerId }) => sessions.revokeAll(environmentId, playerId)
        ],
        player_banned: [({ environmentId, playerId }) => ban(environmentId, playerId)],
        invalid_refresh_token: [({ playerId }) => sql`delete from players where id = ${playerId}`]
      } satisfies Record<
        string,
        ReadonlyArray<
          (
            of: Effect.Success<typeof newGuest>
          ) => Effect.Effect<unknown, unknown, SqlClient.SqlClient>
        >
      >
      for (const [code, all] of Object.entries(ends)) {
        for (const end of all) {
          const guest = yield* newGuest
          const { environmentId, refreshToken } = guest
          yield* refreshed(environmentId, refreshToken, keyOf("own"))
          yield* end(guest)
          assert.strictEqual(yield* refreshed(environmentId, refreshToken, keyOf("own")), code)
        }
      }
    })
  )

  it.effect("lets a player appeal whose last refresh was answered to nobody before the ban", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const { environmentId, playerId, refreshToken } = yield* newGuest
      yield* refreshed(environmentId, refreshToken, keyOf("own"))
      yield* ban(environmentId, playerId)
      const sql = yield* SqlClient.SqlClient
      yield* sql`update sessions set sanction_id = ${sanctionOf(playerId)} where player_id = ${playerId}`
      const appellant = yield* sessions.authenticateAppellant(environmentId, refreshToken)
      assert.deepStrictEqual(appellant, { playerId, sanctionId: sanctionOf(playerId) })
      const proof = yield* Effect.flip(sessions.authenticate(environmentId, refreshToken))
      assert.strictEqual(proof._tag, "invalid_refresh_token")
    })
  )

  it.effect("refuses a key that holds less than 128 bits or has other characters", () =>
    Effect.gen(function* () {
      const { environmentId, refreshToken } = yield* newGuest
      for (const key of [
        "",
        "short",
        "x".repeat(21),
        "x".repeat(129),
        `${"x".repeat(22)} `,
        "é".repeat(22)
      ]) {
        const code = yield* refreshed(environmentId, refreshToken, key)
        assert.strictEqual(code, "invalid_idempotency_key", key)
      }
      for (const key of ["x".repeat(22), "x".repeat(128)]) {
        const guest = yield* newGuest
        assert.match(yield* refreshed(guest.environmentId, guest.refreshToken, key), /^rt_/)
      }
    })
  )

  it.effect("stores the key and the token only as hashes", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { environmentId, playerId, refreshToken } = yield* newGuest
      const next = yield* refreshed(environmentId, refreshToken, keyOf("own"))
      const rows = yield* sql`select s::text as text from sessions s where player_id = ${playerId}`
      const stored = JSON.stringify(rows)
      for (const secret of [keyOf("own"), refreshToken, next]) assert.notInclude(stored, secret)
    })
  )

  it.effect(
    "rotates once for 32 requests at once with one key, and answers all of them",
    () =>
      Effect.gen(function* () {
        const { environmentId, refreshToken } = yield* newGuest
        let current = refreshToken
        for (let round = 0; round < sampleSize(50, 2); round++) {
          const answers = yield* Effect.forEach(
            Array.from({ length: 32 }),
            () => refreshed(environmentId, current, keyOf("own")),
            { concurrency: "unbounded" }
          )
          const [next = ""] = answers
          assert.match(next, /^rt_/)
          assert.notStrictEqual(next, current)
          assert.deepStrictEqual(new Set(answers), new Set([next]))
          current = next
        }
      }),
    { tags: "sized" }
  )

  it.effect("repeats a rotation that a node made under the master key before", () =>
    Effect.gen(function* () {
      const { environmentId, refreshToken } = yield* newGuest
      const next = yield* refreshed(environmentId, refreshToken, keyOf("own"))
      const newer = yield* Layer.build(
        Layer.fresh(
          coreOfNode({ SVC_MASTER_KEY: masterKeyOf(8), SVC_OLDER_MASTER_KEYS: masterKeyOf(7) })
        )
      )
      const again = yield* Effect.provideContext(
        refreshed(environmentId, refreshToken, keyOf("own")),
        newer
      )
      assert.strictEqual(again, next)
    })
  )

  it.effect("treats a rotation of the release before like one without a key", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { environmentId, playerId, refreshToken } = yield* newGuest
      const next = yield* refreshed(environmentId, refreshToken, keyOf("own"))
      // That release rotates without the column, which keeps the hash of the earlier key.
      yield* sql`
        update sessions set parent_hash = token_hash, token_hash = 'another', rotated_at = rotated_at
        where player_id = ${playerId}`
      assert.strictEqual(yield* refreshed(environmentId, next, keyOf("own")), "refresh_race")
    })
  )
})

const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("present" as const),
      by: fc.constantFrom("owner", "thief"),
      /** 0: the current token; further ones are older. */
      age: fc.constantFrom(0, 0, 1, 1, 1, 2),
      keyed: fc.boolean()
    })
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), seconds: fc.constantFrom(4, 10) })
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom("authenticate" as const, "logout" as const, "ban" as const)
    })
  }
)

/** The rules of refresh tokens, as one reads them: what a token gives, and how the chain ends. */
class Chain {
  readonly tokens: Array<string>
  /** Key of the last rotation while it can be repeated. */
  #key: string | undefined
  #rotatedAt = 0
  #ended: string | undefined
  now = 0

  constructor(first: string) {
    this.tokens = [first]
  }

  /** Index of the token that a request gets, or the error code. */
  present(index: number, key: string | undefined): number | string {
    const last = this.tokens.length - 1
    if (this.#ended !== undefined) return this.#ended
    if (index === last) {
      this.#key = key
      this.#rotatedAt = this.now
      return last + 1
    }
    if (index === last - 1) {
      if (key !== undefined && key === this.#key) return last
      if (this.now < this.#rotatedAt + 10) return "refresh_race"
    }
    this.end("session_revoked")
    return "session_revoked"
  }

  authenticated(): void {
    this.#key = undefined
  }

  /** A ban is the reason even for a session that has ended. */
  end(code: string): void {
    if (this.#ended === undefined || code === "player_banned") this.#ended = code
  }
}

layer(Core)("thief and owner of one refresh token", (it) => {
  it.effect(
    "get in every order what the rules say: repeats to the holder of the key, else the end of the chain",
    () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const histories = fc.array(step, { minLength: 4, maxLength: 14 })
        const runs = { numRuns: sampleSize(1000, 15), seed: 38 }
        for (const history of fc.sample(histories, runs)) {
          const { environmentId, playerId, refreshToken } = yield* newGuest
          const chain = new Chain(refreshToken)
          for (const [at, action] of history.entries()) {
            const where = `step ${at} of ${JSON.stringify(history)}`
            const current = chain.tokens.at(-1) ?? ""
            if (action.kind === "present") {
              const index = Math.max(0, chain.tokens.length - 1 - action.age)
              const key = action.keyed ? keyOf(`${action.by}-${index}`) : undefined
              const expected = chain.present(index, key)
              const token = chain.tokens[index] ?? ""
              const answer = yield* refreshed(environmentId, token, key)
              if (typeof expected === "string") assert.strictEqual(answer, expected, where)
              else if (expected < chain.tokens.length) {
                assert.strictEqual(answer, chain.tokens[expected], where)
              } else {
                assert.match(answer, /^rt_/, where)
                assert.notInclude(chain.tokens, answer, where)
                chain.tokens.push(answer)
              }
            } else if (action.kind === "wait") {
              yield* TestClock.adjust(action.seconds * 1000)
              chain.now += action.seconds
            } else if (action.kind === "logout") {
              yield* sessions.logout(environmentId, current)
              chain.end("session_revoked")
            } else if (action.kind === "ban") {
              yield* Effect.ignore(ban(environmentId, playerId))
              chain.end("player_banned")
            } else if (action.kind === "authenticate") {
              const shown = yield* Effect.result(sessions.authenticate(environmentId, current))
              if (Result.isSuccess(shown)) chain.authenticated()
            }
          }
        }
      }),
    { timeout: 600_000, tags: "sized" }
  )
})
