/**
 * Going on as the same player in another browser (spec sections 3 and 4.1, decisions 3.2.15). A code is
 * short, as people type it; it is not found by trying, since it lives for ten minutes and each address
 * has ten tries a minute. It ends with the session that has asked for it.
 */
import { Effect, Layer, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#rpc/api"
import {
  CurrentEnvironment,
  CurrentPlayer,
  type EnvironmentCaller,
  type PlayerCaller
} from "#rpc/auth"
import { InvalidCode, NotFound, ShareInAppBrowserDisabled } from "#rpc/errors/codes"
import { readableCode } from "#rpc/ids"
import { sessions as lives, throttles as paces, transfer as limits } from "#rpc/limits"
import { InAppBrowserGate } from "#rpc/transfer"
import { IdentityRepository } from "#sql/identities"
import { clientAddress } from "#server/platform/client-address"
import { makeTransaction } from "#server/platform/database"
import { Settings } from "#server/platform/settings/settings"
import { SingleUseCodes } from "#server/platform/single-use-codes"
import { takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { Configs } from "../config/service.ts"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { Sessions } from "../sessions/service.ts"

/** Answers only while the environment has the tool turned on. */
export const InAppBrowserGateLive = Layer.effect(
  InAppBrowserGate,
  Effect.gen(function* () {
    const configs = yield* Configs
    return InAppBrowserGate.of(
      Effect.fnUntraced(function* (answer) {
        const { environmentId } = yield* CurrentEnvironment
        const { share } = (yield* configs.current(environmentId)).config
        return share.inAppBrowser.enabled ? yield* answer : yield* new ShareInAppBrowserDisabled()
      })
    )
  })
)

const purpose = "transfer"
const seconds = lives.transferCodeSeconds

/** What somebody has typed, as it was issued. */
const canonical = (typed: string): string => typed.replace(/[\s-]/gu, "").toUpperCase()

const makeIssue = Effect.gen(function* () {
  const codes = yield* SingleUseCodes
  const identities = yield* IdentityRepository
  const random = yield* SecureRandom.SecureRandom
  const sessions = yield* Sessions
  const transaction = yield* makeTransaction

  /** The player has one code at a time. */
  const issue = Effect.fnUntraced(
    function* ({ environmentId, playerId, sessionId }: PlayerCaller) {
      const data: string = sessionId ?? ""
      const whose = { environmentId, playerId }
      if (Option.isNone(yield* identities.hold(whose))) return yield* new NotFound()
      yield* sessions.hold(environmentId, playerId, data)
      yield* codes.revoke(environmentId, playerId, purpose)
      const code = yield* readableCode(limits.codeCharacters)
      return yield* codes.issue({ ...whose, purpose, seconds, code, data })
    },
    Effect.provideService(SecureRandom.SecureRandom, random)
  )

  return (caller: PlayerCaller) => transaction(issue(caller))
})

const makeRedeem = Effect.gen(function* () {
  const codes = yield* SingleUseCodes
  const sessions = yield* Sessions
  const standings = yield* PlayerStatusCache
  const transaction = yield* makeTransaction

  return Effect.fnUntraced(
    function* ({ environmentId }: EnvironmentCaller, code: string) {
      const found = yield* codes.peek(environmentId, purpose, code)
      if (Option.isNone(found)) return yield* new InvalidCode()
      const { data: sessionId, playerId } = found.value
      yield* standings.check(environmentId, playerId)
      return yield* transaction(
        Effect.gen(function* () {
          yield* sessions.hold(environmentId, playerId, sessionId)
          const spent = yield* codes.spend(environmentId, purpose, code)
          if (Option.isNone(spent)) return yield* new InvalidCode()
          return yield* sessions.signIn(environmentId, playerId)
        })
      )
    },
    Effect.catchTag(["session_revoked", "player_not_found"], () => Effect.fail(new InvalidCode()))
  )
})

/** `POST /v1/auth/transfer` and `/v1/auth/transfer/redeem`. */
export const TransferHttp = HttpApiBuilder.group(
  Api,
  "transfer",
  Effect.fn(function* (handlers) {
    const issue = yield* makeIssue
    const redeemed = yield* makeRedeem
    const throttles = yield* Throttles
    const { trustedProxies } = yield* Settings
    return handlers.handleAll({
      issue: Effect.fnUntraced(function* () {
        const caller = yield* CurrentPlayer
        yield* takeToken(throttles, paces.transferPerPlayer, `transfer:${caller.playerId}`)
        return { code: yield* issue(caller), expiresIn: seconds }
      }),
      redeem: Effect.fnUntraced(function* ({ payload, request }) {
        const environment = yield* CurrentEnvironment
        const address = clientAddress(request, trustedProxies)
        const key = `redeem:${environment.environmentId}:${address}`
        yield* takeToken(throttles, paces.redeemPerAddress, key)
        return yield* redeemed(environment, canonical(payload.code))
      })
    })
  })
).pipe(Layer.provide(InAppBrowserGateLive))
