/**
 * The ledger of prepaid money: posts events and reads balances. An event is one transaction with a
 * unique source. So the ledger posts repeated, concurrent and interrupted events once or not at all.
 */
import { Array, Context, DateTime, Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { type DeveloperId, newId } from "#rpc/ids"
import { type LedgerAccount, type LedgerKind, LedgerRepository } from "#sql/money/ledger"
import { makeTransaction } from "#server/platform/database"
import { type Balances, confirmInvite, grantInvite, type Movement } from "./postings.ts"

export const inviteCreditCents = 500n

/** Event that moves money of one developer. */
export interface LedgerEvent {
  readonly developerId: DeveloperId
  readonly kind: LedgerKind
  /** Unique name of the event, such as `refund:re_1`. */
  readonly source: string
  /** Short description for the developer. */
  readonly description: string
  readonly movement: Movement
}

export class Ledger extends Context.Service<
  Ledger,
  {
    /**
     * Posts an event; false if the ledger has it already, or if it moves nothing. Joins a transaction.
     */
    readonly post: (event: LedgerEvent) => Effect.Effect<boolean>
    readonly balances: (developerId: DeveloperId) => Effect.Effect<Balances>
    /**
     * Grants the credit of an invitation, once for each developer; false if an earlier call granted it.
     * The developer cannot use pending credit until `confirmInvite`.
     */
    readonly grantInvite: (grant: {
      readonly developerId: DeveloperId
      readonly pending: boolean
    }) => Effect.Effect<boolean>
    /** Makes the pending credit of an invitation usable; false if there is none. */
    readonly confirmInvite: (developerId: DeveloperId) => Effect.Effect<boolean>
  }
>()("server/features/money/ledger/Ledger") {
  static readonly layer = Layer.effect(
    Ledger,
    Effect.gen(function* () {
      const { balances, post } = yield* makePost
      return Ledger.of({
        balances,
        post,
        grantInvite: ({ developerId, pending }) =>
          post({
            developerId,
            kind: "invite",
            source: `invite:${developerId}`,
            description: "Credit of an invitation",
            movement: grantInvite(pending ? "invite_pending" : "invite", inviteCreditCents)
          }),
        confirmInvite: (developerId) =>
          post({
            developerId,
            kind: "invite",
            source: `invite:${developerId}:confirmed`,
            description: "Credit of an invitation",
            movement: confirmInvite
          })
      })
    })
  )
}

const makePost = Effect.gen(function* () {
  const repository = yield* LedgerRepository
  const random = yield* SecureRandom.SecureRandom
  const transaction = yield* makeTransaction

  const sums = Effect.fnUntraced(function* (developerId: DeveloperId) {
    const rows = yield* repository.sums(developerId)
    return new Map(rows.map(({ account, sum }) => [account, sum]))
  })

  const balancesOf = (sum: ReadonlyMap<LedgerAccount, bigint>): Balances => ({
    prepaid: sum.get("prepaid") ?? 0n,
    owed: sum.get("owed") ?? 0n,
    invite: sum.get("invite") ?? 0n,
    invitePending: sum.get("invite_pending") ?? 0n
  })

  const postLocked = Effect.fnUntraced(function* (event: LedgerEvent) {
    const { description, developerId, kind, movement, source } = event
    if (!(yield* repository.lock(developerId))) return false
    const before = yield* sums(developerId)
    const postings = movement(balancesOf(before))
    if (!Array.isReadonlyArrayNonEmpty(postings)) return false
    const createdAt = yield* DateTime.now
    const transactionId = yield* newId.ledgerTransaction
    const row = { id: transactionId, developerId, kind, source, description, createdAt }
    if (!(yield* repository.insertTransaction(row))) return false
    yield* repository.insertPostings(
      yield* Effect.forEach(postings, ({ account, amount }) =>
        Effect.map(newId.ledgerEntry, (id) => {
          const balanceAfter = (before.get(account) ?? 0n) + amount
          return { id, transactionId, developerId, account, amount, balanceAfter, createdAt }
        })
      )
    )
    return true
  })

  return {
    balances: (developerId: DeveloperId) => Effect.map(sums(developerId), balancesOf),
    post: Effect.fn("Ledger.post")(
      (event: LedgerEvent) => transaction(postLocked(event)),
      Effect.provideService(SecureRandom.SecureRandom, random)
    )
  }
})
