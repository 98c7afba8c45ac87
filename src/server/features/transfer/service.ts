/**
 * Transfer codes: a player continues in another browser by typing a short code. Guessing fails, because
 * a code lives for ten minutes and an address has ten tries a minute. The end of the requesting session
 * invalidates the code.
 */
import { Effect, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import type { EnvironmentCaller, PlayerCaller } from "#rpc/auth"
import { InvalidCode, NotFound } from "#rpc/errors/codes"
import { readableCode } from "#rpc/ids"
import { sessions as lifetimes, transfer as limits } from "#rpc/limits"
import { IdentityRepository } from "#sql/identities"
import { makeTransaction } from "#server/platform/database"
import { SingleUseCodes } from "#server/platform/single-use-codes"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { Sessions } from "../sessions/service.ts"

const purpose = "transfer"

/** Lifetime of a code, in seconds. */
export const seconds = lifetimes.transferCodeSeconds

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
      const code = yield* readableCode(limits.codeCharacters)
      return yield* codes.issue({ ...owner, purpose, seconds, code, data })
    },
    Effect.provideService(SecureRandom.SecureRandom, random)
  )

  return (player: PlayerCaller) => transaction(issue(player))
})

/** Signs in the player of a code. Spends the code only if it creates a session. */
export const makeRedeem = Effect.gen(function* () {
  const codes = yield* SingleUseCodes
  const sessions = yield* Sessions
  const statuses = yield* PlayerStatusCache
  const transaction = yield* makeTransaction

  return Effect.fnUntraced(
    function* ({ environmentId }: EnvironmentCaller, code: string) {
      const found = yield* codes.peek(environmentId, purpose, code)
      if (Option.isNone(found)) return yield* new InvalidCode()
      const { data: sessionId, playerId } = found.value
      yield* statuses.requireNotBanned(environmentId, playerId)
      return yield* transaction(
        Effect.gen(function* () {
          yield* sessions.lockOpenSession(environmentId, playerId, sessionId)
          const spent = yield* codes.spend(environmentId, purpose, code)
          if (Option.isNone(spent)) return yield* new InvalidCode()
          return yield* sessions.signIn(environmentId, playerId)
        })
      )
    },
    Effect.catchTag(["session_revoked", "player_not_found"], () => Effect.fail(new InvalidCode()))
  )
})
