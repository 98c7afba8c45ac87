/**
 * One-time links that sign in the developer of the demo project, outside production only. The start line
 * and the start page show them to people at this machine. Every runner accepts them.
 */
import { Context, DateTime, Effect, Layer, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import type { DeveloperSignedIn } from "#rpc/developers"
import { InvalidCredentials } from "#rpc/errors/codes"
import { DeveloperRepository } from "#sql/developers/repository"
import { SignInLinkRepository } from "#sql/developers/sign-in-links"
import { makeTransaction } from "#server/platform/database"
import { awaitDatabase } from "#server/platform/database-start"
import { randomSecret, sha256 } from "#server/platform/secrets"
import { type Keep, type RepeatError, SpentResponses } from "#server/platform/spent-responses"
import { Settings } from "#server/platform/settings/settings"
import { KeptSession, keptSession, makeRepeatSession, spendingOf } from "./kept-session.ts"
import { DeveloperSessions } from "./sessions.ts"
import { viewOf } from "./view.ts"

/** One-time links into the dashboard, in development: how long they work, and how many there are. */
const signInLinkSeconds = 3600
const signInLinksMax = 16

/** The developer of the demo project. */
export const demoEmail = "demo@localhost"

const expired = new InvalidCredentials({
  message: "This link was used or has expired. Sign in with email and password."
})

export class SignInLinks extends Context.Service<
  SignInLinks,
  {
    /** Creates a link and returns its code; none in production or without a demo developer. */
    readonly create: Effect.Effect<Option.Option<string>>
    /** Signs in with the code of a link. A code works once, and again with the same key. */
    readonly use: (
      code: string,
      key: string | undefined
    ) => Effect.Effect<DeveloperSignedIn, InvalidCredentials | RepeatError>
  }
>()("server/features/developers/sign-in-links/SignInLinks") {
  static readonly layer = Layer.effect(
    SignInLinks,
    Effect.gen(function* () {
      const repository = yield* DeveloperRepository
      const sessions = yield* DeveloperSessions
      const random = yield* SecureRandom.SecureRandom
      const { production } = yield* Settings
      const links = yield* SignInLinkRepository
      const demo = repository.findByEmail([demoEmail])
      const responses = yield* SpentResponses
      const repeat = (yield* makeRepeatSession)(expired)
      const transaction = yield* makeTransaction
      const spend = Effect.fnUntraced(function* (
        code: string,
        keep: Keep<typeof KeptSession.Type>
      ) {
        const now = yield* DateTime.now
        const workingUntil = yield* links.take(sha256(code))
        const isExpired = Option.match(workingUntil, {
          onNone: () => true,
          onSome: DateTime.isLessThan(now)
        })
        const developer = yield* demo
        if (isExpired || Option.isNone(developer)) return Option.none()
        const { expiresAt, token } = yield* sessions.create(developer.value.id)
        const view = { developer: viewOf(developer.value), token }
        const signedIn: DeveloperSignedIn = { ...view, expiresAt: DateTime.formatIso(expiresAt) }
        yield* keep(keptSession(signedIn))
        return Option.some(signedIn)
      }, transaction)
      return SignInLinks.of({
        create: Effect.gen(function* () {
          if (production || Option.isNone(yield* demo)) return Option.none()
          const code = yield* randomSecret
          const expiresAt = DateTime.add(yield* DateTime.now, { seconds: signInLinkSeconds })
          yield* links.insert({ hash: sha256(code), expiresAt }, signInLinksMax)
          return Option.some(code)
        }).pipe(Effect.provideService(SecureRandom.SecureRandom, random)),
        use: Effect.fn("SignInLinks.use")(function* (code, key) {
          const request = spendingOf("POST /dashboard/session/link", code, code, key)
          return yield* responses.once(request, KeptSession, {
            spend: Effect.fnUntraced(function* (keep) {
              const signedIn = yield* spend(code, keep)
              return Option.isSome(signedIn) ? signedIn.value : yield* expired
            }),
            repeat
          })
        })
      })
    })
  )
}

/**
 * The code of the start message; none in production or without a demo developer. It is made before the
 * process takes shards, so that a database that is away then delays the start and ends no room.
 */
export class StartCode extends Context.Service<StartCode, Option.Option<string>>()(
  "server/features/developers/sign-in-links/StartCode"
) {
  static readonly layer = Layer.effect(
    StartCode,
    Effect.flatMap(SignInLinks, ({ create }) => awaitDatabase(create))
  )
}
