/**
 * Transfer codes: a player continues in another browser by typing a short code. Guessing fails, because
 * a code lives for ten minutes and an address has ten tries a minute. The end of the requesting session
 * invalidates the code.
 */
import { Effect, Option, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import type { EnvironmentCaller, PlayerCaller } from "#rpc/auth"
import { InvalidCode, NotFound } from "#rpc/errors/codes"
import { type EnvironmentId, readableCode } from "#rpc/ids"
import { IdentityRepository } from "#sql/identities"
import { makeTransaction } from "#server/platform/database"
import { SingleUseCodes } from "#server/platform/single-use-codes"
import { type Keep, SpentResponses } from "#server/platform/spent-responses"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { Sessions } from "../sessions/service.ts"

const transferCodeSeconds = 600
export const transferCodeCharacters = 8

const purpose = "transfer"

/** Lifetime of a code, in seconds. */
export const seconds = transferCodeSeconds

/** Issues a code and invalidates the player's earlier one. */
export const makeIssue = Effect.gen(function* () {
  const codes = yield* SingleUseCodes
  const identities = yield* IdentityRepository
  const random = yield* SecureRandom.SecureRandom
  const sessions = yield* Sessions
  const transaction = yield* makeTransaction

  const issue = Effect.fnUntraced(
    function* ({ environmentId, playerId, sessionId }: PlayerCaller) {
      const data: string = sessionId ?? ""
      const owner = { environmentId, playerId }
      if (Option.isNone(yield* identities.lockPlayer(owner))) return yield* new NotFound()
      yield* sessions.lockOpenSession(environmentId, playerId, data)
      yield* codes.revoke(environmentId, playerId, purpose)
      const code = yield* readableCode(transferCodeCharacters)
      return yield* codes.issue({ ...owner, purpose, seconds, code, data })
    },
    Effect.provideService(SecureRandom.SecureRandom, random)
  )

  return (player: PlayerCaller) => transaction(issue(player))
})

/** What a repeated request needs. */
const Kept = Schema.Struct({ refreshToken: Schema.String })

/** Signs in the player of a code. Spends the code only if it creates a session. */
export const makeRedeem = Effect.gen(function* () {
  const responses = yield* SpentResponses
  const codes = yield* SingleUseCodes
  const sessions = yield* Sessions
  const statuses = yield* PlayerStatusCache
  const transaction = yield* makeTransaction

  const spend = Effect.fnUntraced(
    function* (environmentId: EnvironmentId, code: string, keep: Keep<typeof Kept.Type>) {
      const found = yield* codes.peek(environmentId, purpose, code)
      if (Option.isNone(found)) return yield* new InvalidCode()
      const { data: sessionId, playerId } = found.value
      yield* statuses.requireNotBanned(environmentId, playerId)
      return yield* transaction(
        Effect.gen(function* () {
          yield* sessions.lockOpenSession(environmentId, playerId, sessionId)
          const spent = yield* codes.spend(environmentId, purpose, code)
          if (Option.isNone(spent)) return yield* new InvalidCode()
          const session = yield* sessions.signIn(environmentId, playerId)
          yield* keep({ refreshToken: session.refreshToken }, playerId)
          return session
        })
      )
    },
    Effect.catchTag(["session_revoked", "player_not_found"], () => Effect.fail(new InvalidCode()))
  )

  return ({ environmentId: tenant }: EnvironmentCaller, code: string, key: string | undefined) => {
    const request = { tenant, path: "POST /v1/auth/transfer/redeem", secret: code, body: code, key }
    return responses.once(request, Kept, {
      spend: (keep) => spend(tenant, code, keep),
      repeat: Effect.fnUntraced(function* ({ refreshToken }) {
        const again = yield* sessions.reissue(tenant, refreshToken)
        return Option.isSome(again) ? again.value : yield* new InvalidCode()
      })
    })
  }
})
