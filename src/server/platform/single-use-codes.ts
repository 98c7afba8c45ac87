/** Codes that work once and for a limited time: links in mails, and transfers to another browser. */
import { Context, DateTime, Effect, Layer, type Option } from "effect"
import { SecureRandom } from "effect/crypto"
import type { EnvironmentId, PlayerId } from "#rpc/ids"
import { type CodePurpose, CodeRepository } from "#sql/single-use-codes"
import { sweepDaily } from "./database.ts"
import { randomSecret, sha256 } from "./secrets.ts"

/** A code to issue. */
interface Issue {
  readonly environmentId: EnvironmentId
  readonly playerId: PlayerId
  readonly purpose: CodePurpose
  readonly seconds: number
  /** Data that spending the code returns. */
  readonly data?: string
  /** The code itself, where 256 random bits are too long to type. */
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
    /** Issues a code; earlier codes of the player stay valid. */
    readonly issue: (issue: Issue) => Effect.Effect<string>
    /** Spends a code; none if it is unknown, spent, expired or has another purpose. */
    readonly spend: (
      environmentId: EnvironmentId,
      purpose: CodePurpose,
      code: string
    ) => Effect.Effect<Option.Option<Spent>>
    /** Reads a code that could be spent, without spending it. */
    readonly peek: (
      environmentId: EnvironmentId,
      purpose: CodePurpose,
      code: string
    ) => Effect.Effect<Option.Option<Spent>>
    /** Invalidates a player's codes of a purpose. */
    readonly revoke: (
      environmentId: EnvironmentId,
      playerId: PlayerId,
      purpose: CodePurpose
    ) => Effect.Effect<void>
    /** Invalidates a player's codes of all purposes. */
    readonly revokeAll: (environmentId: EnvironmentId, playerId: PlayerId) => Effect.Effect<void>
  }
>()("server/platform/single-use-codes/SingleUseCodes") {
  static readonly layer = Layer.effect(
    SingleUseCodes,
    Effect.gen(function* () {
      const repository = yield* CodeRepository
      const random = yield* SecureRandom.SecureRandom
      yield* sweepDaily("Single-use codes", repository.sweep)
      return SingleUseCodes.of({
        issue: Effect.fn("SingleUseCodes.issue")(
          function* ({ code, data = "", seconds, ...owner }) {
            const text = code ?? (yield* randomSecret)
            const expiresAt = DateTime.add(yield* DateTime.now, { seconds })
            yield* repository.insert({ ...owner, hash: hashOf(owner, text), data, expiresAt })
            return text
          },
          Effect.provideService(SecureRandom.SecureRandom, random)
        ),
        spend: Effect.fn("SingleUseCodes.spend")(function* (environmentId, purpose, code) {
          const hash = hashOf({ environmentId, purpose }, code)
          return yield* repository.spend({ hash, environmentId, purpose, now: yield* DateTime.now })
        }),
        peek: Effect.fnUntraced(function* (environmentId, purpose, code) {
          const hash = hashOf({ environmentId, purpose }, code)
          return yield* repository.peek({ hash, environmentId, purpose, now: yield* DateTime.now })
        }),
        revoke: (environmentId, playerId, purpose) =>
          repository.revoke({ environmentId, playerId, purpose }),
        revokeAll: (environmentId, playerId) => repository.revokeAll({ environmentId, playerId })
      })
    })
  )
}

/**
 * Returns the hash of a code. Two environments or purposes may issue the same short code, so both
 * are part of the hash.
 */
const hashOf = (
  { environmentId, purpose }: { readonly environmentId: string; readonly purpose: CodePurpose },
  code: string
): string => sha256(`${environmentId}/${purpose}/${code}`)
