/**
 * Codes that work once and for a while, each for one purpose: links in mails, the change to another
 * browser (spec sections 3 and 8).
 */
import { Context, DateTime, Effect, Layer, type Option } from "effect"
import { SecureRandom } from "effect/crypto"
import type { EnvironmentId, PlayerId } from "#rpc/ids"
import { type CodePurpose, CodeRepository } from "#sql/single-use-codes"
import { sweepDaily } from "./database.ts"
import { randomSecret, sha256 } from "./secrets.ts"

/** A code to be. */
interface Issue {
  readonly environmentId: EnvironmentId
  readonly playerId: PlayerId
  readonly purpose: CodePurpose
  readonly seconds: number
  /** What whoever spends it gets to know. */
  readonly data?: string
  /** Its text, where 256 random bits are too long for people. */
  readonly code?: string
}

/** A spent code. */
interface Spent {
  readonly playerId: PlayerId
  readonly data: string
}

/** Issues and spends codes. */
export class SingleUseCodes extends Context.Service<
  SingleUseCodes,
  {
    /** A new code; what the same player had of its purpose works until it ends. */
    readonly issue: (issue: Issue) => Effect.Effect<string>
    /** Whose code it is; none when it is unknown, spent, expired or for something else. */
    readonly spend: (
      environmentId: EnvironmentId,
      purpose: CodePurpose,
      code: string
    ) => Effect.Effect<Option.Option<Spent>>
    /** Whose code it is, as long as it can be spent; it is not. */
    readonly peek: (
      environmentId: EnvironmentId,
      purpose: CodePurpose,
      code: string
    ) => Effect.Effect<Option.Option<Spent>>
    /** Makes a player's codes of a purpose useless. */
    readonly revoke: (
      environmentId: EnvironmentId,
      playerId: PlayerId,
      purpose: CodePurpose
    ) => Effect.Effect<void>
  }
>()("server/platform/single-use-codes/SingleUseCodes") {
  static readonly layer = Layer.effect(
    SingleUseCodes,
    Effect.gen(function* () {
      const rows = yield* CodeRepository
      const random = yield* SecureRandom.SecureRandom
      yield* sweepDaily("Single-use codes", rows.sweep)
      return SingleUseCodes.of({
        issue: Effect.fn("SingleUseCodes.issue")(
          function* ({ code, data = "", seconds, ...whose }) {
            const text = code ?? (yield* randomSecret)
            const expiresAt = DateTime.add(yield* DateTime.now, { seconds })
            yield* rows.insert({ ...whose, hash: hashOf(whose, text), data, expiresAt })
            return text
          },
          Effect.provideService(SecureRandom.SecureRandom, random)
        ),
        spend: Effect.fn("SingleUseCodes.spend")(function* (environmentId, purpose, code) {
          const hash = hashOf({ environmentId, purpose }, code)
          return yield* rows.spend({ hash, environmentId, purpose, now: yield* DateTime.now })
        }),
        peek: Effect.fnUntraced(function* (environmentId, purpose, code) {
          const hash = hashOf({ environmentId, purpose }, code)
          return yield* rows.look({ hash, environmentId, purpose, now: yield* DateTime.now })
        }),
        revoke: (environmentId, playerId, purpose) =>
          rows.withdraw({ environmentId, playerId, purpose })
      })
    })
  )
}

/** Two environments, or purposes, may have issued the same short code. */
const hashOf = (
  { environmentId, purpose }: { readonly environmentId: string; readonly purpose: CodePurpose },
  code: string
): string => sha256(`${environmentId}/${purpose}/${code}`)
