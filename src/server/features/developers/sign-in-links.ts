/**
 * One-time links that sign in the developer of the demo project, outside production only. The start line
 * and the start page show them to people at this machine. They live in this process.
 */
import { Clock, Context, DateTime, Effect, Layer, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import type { DeveloperSignedIn } from "#rpc/developers"
import { InvalidCredentials } from "#rpc/errors/codes"
import { developers as limits } from "#rpc/limits"
import { DeveloperRepository } from "#sql/developers/repository"
import { monotonicMillis } from "#server/platform/monotonic"
import { randomSecret, sha256 } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { DeveloperSessions } from "./sessions.ts"
import { viewOf } from "./view.ts"

/** The developer of the demo project. */
export const demoEmail = "demo@localhost"

const expired = new InvalidCredentials({
  message: "This link was used or has expired. Sign in with email and password."
})

export class SignInLinks extends Context.Service<
  SignInLinks,
  {
    /** The code of a new link; none in production or without a demo developer. */
    readonly create: Effect.Effect<Option.Option<string>>
    /** Signs in with the code of a link, once. */
    readonly use: (code: string) => Effect.Effect<DeveloperSignedIn, InvalidCredentials>
  }
>()("server/features/developers/sign-in-links/SignInLinks") {
  static readonly layer = Layer.effect(
    SignInLinks,
    Effect.gen(function* () {
      const repository = yield* DeveloperRepository
      const sessions = yield* DeveloperSessions
      const random = yield* SecureRandom.SecureRandom
      const { production } = yield* Settings
      const now = monotonicMillis(yield* Clock.Clock)
      /** Expiry of each link by the hash of its code, oldest first. */
      const links = new Map<string, number>()
      const demo = repository.findByEmail(demoEmail)
      return SignInLinks.of({
        create: Effect.gen(function* () {
          if (production || Option.isNone(yield* demo)) return Option.none()
          const code = yield* randomSecret
          const [oldest] = links.keys()
          if (links.size >= limits.signInLinksMax && oldest !== undefined) links.delete(oldest)
          links.set(sha256(code), now() + limits.signInLinkSeconds * 1000)
          return Option.some(code)
        }).pipe(Effect.provideService(SecureRandom.SecureRandom, random)),
        use: Effect.fn("SignInLinks.use")(function* (code) {
          const key = sha256(code)
          const workingUntil = links.get(key)
          links.delete(key)
          if (workingUntil === undefined || workingUntil < now()) return yield* expired
          const developer = yield* demo
          if (Option.isNone(developer)) return yield* expired
          const { expiresAt, token } = yield* sessions.create(developer.value.id)
          const signedIn = { developer: viewOf(developer.value), token }
          return { ...signedIn, expiresAt: DateTime.formatIso(expiresAt) }
        })
      })
    })
  )
}
