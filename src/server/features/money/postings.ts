/**
 * Rules of the ledger: how an event moves money between accounts, in cents. Pure. The postings of an
 * event add up to zero. Credit is positive; debt (`owed`) is negative. So `owed` is never above zero,
 * and the other accounts of a developer are never below it.
 */
import type { LedgerAccount } from "#sql/money/ledger"

/** Sums of the accounts of a developer. */
export interface Balances {
  readonly prepaid: bigint
  readonly owed: bigint
  readonly invite: bigint
  readonly invitePending: bigint
}

export interface Posting {
  readonly account: LedgerAccount
  readonly amount: bigint
}

/** Computes the postings of an event from the balances before it. */
export type Movement = (before: Balances) => ReadonlyArray<Posting>

const least = (a: bigint, b: bigint): bigint => (a < b ? a : b)

const withoutZeros = (postings: ReadonlyArray<Posting>): ReadonlyArray<Posting> =>
  postings.filter(({ amount }) => amount !== 0n)

/** Credits incoming money. Pays debt first. */
export const creditFrom =
  (account: "provider" | "adjustments", amount: bigint): Movement =>
  ({ owed }) => {
    const settled = least(-owed, amount)
    return withoutZeros([
      { account, amount: -amount },
      { account: "owed", amount: settled },
      { account: "prepaid", amount: amount - settled }
    ])
  }

/** Returns money to the provider after a refund or a dispute. Invite credit cannot pay for it. */
export const returnToProvider =
  (amount: bigint): Movement =>
  ({ prepaid }) => {
    const paid = least(prepaid, amount)
    return withoutZeros([
      { account: "prepaid", amount: -paid },
      { account: "owed", amount: paid - amount },
      { account: "provider", amount }
    ])
  }

/** Charges usage to invite credit, then to prepaid money; the rest becomes debt. */
export const chargeUsage =
  (amount: bigint): Movement =>
  ({ invite, prepaid }) => {
    const granted = least(invite, amount)
    const paid = least(prepaid, amount - granted)
    return withoutZeros([
      { account: "invite", amount: -granted },
      { account: "prepaid", amount: -paid },
      { account: "owed", amount: granted + paid - amount },
      { account: "revenue", amount }
    ])
  }

/** Grants invite credit. The developer cannot use it while it is pending. */
export const grantInvite =
  (account: "invite" | "invite_pending", amount: bigint): Movement =>
  () => [
    { account: "grants", amount: -amount },
    { account, amount }
  ]

/** Makes all pending invite credit usable. */
export const confirmInvite: Movement = ({ invitePending }) =>
  withoutZeros([
    { account: "invite_pending", amount: -invitePending },
    { account: "invite", amount: invitePending }
  ])
