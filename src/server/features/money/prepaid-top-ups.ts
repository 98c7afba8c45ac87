/**
 * Prepaid top-ups by a checkout: a payment at the provider's hosted page. The service stores the row
 * first, so that every report of the provider finds it. A repeated request with the same
 * `Idempotency-Key` continues the first one. The provider gets the same request under the same key and
 * opens one session.
 */
import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import type { DeveloperCaller } from "#rpc/auth"
import {
  IdempotencyKeyReused,
  InvalidAmount,
  type InvalidIdempotencyKey,
  NotFound,
  PaymentsUnavailable,
  type RateLimited
} from "#rpc/errors/codes"
import { CheckoutId, newId } from "#rpc/ids"
import type { Checkout, NewCheckout } from "#rpc/money"
import { secondsPerHour } from "#rpc/units"
import { CheckoutRepository, type CheckoutRow } from "#sql/money/checkouts"
import { LedgerRepository } from "#sql/money/ledger"
import { makeTransaction } from "#server/platform/database"
import { checkKey, idempotencyKeptSeconds } from "#server/platform/idempotency"
import { sha256 } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { Throttles } from "#server/platform/throttles"
import { PaymentProvider } from "./provider.ts"

/** The amount of a checkout. */
const cents = { min: 500, max: 1_000_000, unit: "cents" } as const

/** Time for which a checkout can be paid; the provider allows at most a day. */
const checkoutSeconds = 23 * secondsPerHour

/** Checkouts that one developer starts. */
export const checkoutThrottle = { burst: 20, seconds: secondsPerHour } as const

type StartError =
  | InvalidAmount
  | InvalidIdempotencyKey
  | IdempotencyKeyReused
  | PaymentsUnavailable
  | RateLimited

export class Checkouts extends Context.Service<
  Checkouts,
  {
    readonly start: (
      caller: DeveloperCaller,
      request: NewCheckout,
      key: string | undefined
    ) => Effect.Effect<Checkout, StartError>
    /** Reads a checkout of this developer. */
    readonly read: (caller: DeveloperCaller, id: string) => Effect.Effect<Checkout, NotFound>
  }
>()("server/features/money/prepaid-top-ups/Checkouts") {
  static readonly layer = Layer.effect(
    Checkouts,
    Effect.gen(function* () {
      const repository = yield* CheckoutRepository
      return Checkouts.of({
        start: yield* makeStart,
        read: Effect.fn("Checkouts.read")(function* ({ developerId }, id) {
          const checkoutId = Schema.decodeUnknownOption(CheckoutId)(id)
          if (Option.isNone(checkoutId)) return yield* new NotFound()
          const found = Option.getOrUndefined(yield* repository.find(checkoutId.value))
          if (found?.developerId !== developerId || found.url === null) return yield* new NotFound()
          return viewOf(found, found.url)
        })
      })
    })
  )
}

const viewOf = ({ amount, expiresAt, id, status }: CheckoutRow, url: string): Checkout => ({
  id,
  url,
  status,
  amount: Number(amount),
  currency: "usd",
  expiresAt: DateTime.formatIso(expiresAt)
})

const checkAmount = (amount: number): Effect.Effect<bigint, InvalidAmount> =>
  Number.isInteger(amount) && amount >= cents.min && amount <= cents.max
    ? Effect.succeed(BigInt(amount))
    : Effect.fail(
        new InvalidAmount({
          message: `Expected a whole number of cents from ${cents.min} to ${cents.max}.`,
          details: cents
        })
      )

/** Finds the developer's checkout with the same key from within the last day. */
const findByKey = (
  repository: CheckoutRepository["Service"],
  { createdAt, developerId }: CheckoutRow,
  key: string
) => {
  const since = DateTime.subtract(createdAt, { seconds: idempotencyKeptSeconds })
  return repository.findByKey({ developerId, key, since })
}

const makeStart = Effect.gen(function* () {
  const { enabled } = (yield* Settings).money
  const provider = yield* PaymentProvider
  const repository = yield* CheckoutRepository
  const ledger = yield* LedgerRepository
  const random = yield* SecureRandom.SecureRandom
  const transaction = yield* makeTransaction
  const throttles = yield* Throttles

  /**
   * Counts a new checkout against the limit of the developer. A retry that finds a checkout with its
   * session does not count.
   */
  const takePlace = Effect.fnUntraced(function* (row: CheckoutRow, key: string | undefined) {
    const found = key === undefined ? Option.none() : yield* findByKey(repository, row, key)
    if (Option.isSome(found) && found.value.url !== null) return
    yield* throttles.take(checkoutThrottle, `checkout:${row.developerId}`)
  })

  /** Returns the checkout of the key, or inserts a new one. */
  const findOrInsert = Effect.fnUntraced(function* (row: CheckoutRow, key: string | null) {
    const { developerId, fingerprint } = row
    yield* ledger.lock(developerId)
    if (key !== null) {
      const found = yield* findByKey(repository, row, key)
      if (Option.isSome(found)) {
        const isSame = found.value.fingerprint === fingerprint
        return isSame ? found.value : yield* new IdempotencyKeyReused()
      }
    }
    yield* repository.insert({ ...row, idempotencyKey: key })
    return row
  })

  return Effect.fn("Checkouts.start")(
    function* (
      { developerId, email }: DeveloperCaller,
      request: NewCheckout,
      key: string | undefined
    ) {
      if (!enabled) return yield* new PaymentsUnavailable()
      if (key !== undefined) yield* checkKey(key)
      const amount = yield* checkAmount(request.amount)
      if (provider === undefined) return yield* new PaymentsUnavailable()
      const { cancelUrl, successUrl } = request
      const createdAt = yield* DateTime.now
      const row: CheckoutRow = {
        id: yield* newId.checkout,
        developerId,
        amount,
        status: "open",
        successUrl,
        cancelUrl,
        fingerprint: sha256(JSON.stringify([request.amount, successUrl, cancelUrl])),
        sessionId: null,
        url: null,
        paymentId: null,
        createdAt,
        expiresAt: DateTime.add(createdAt, { seconds: checkoutSeconds })
      }
      yield* takePlace(row, key)
      const checkout = yield* transaction(findOrInsert(row, key ?? null))
      if (checkout.url !== null) return viewOf(checkout, checkout.url)
      const { sessionId, url } = yield* provider.createSession(checkout, email)
      yield* repository.setSession({ id: checkout.id, sessionId, url })
      return viewOf(checkout, url)
    },
    Effect.provideService(SecureRandom.SecureRandom, random)
  )
})
