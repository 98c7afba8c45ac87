/**
 * Time that the drawing process spends on each environment while others draw, too. An environment may use
 * a burst at once; it comes back at a share of the passing time. Alone, it may use all of it.
 */
import { shareCards } from "#rpc/share/limits"

interface Account {
  readonly usedMillis: number
  readonly atMillis: number
}

/** The part of the burst that an account still uses. */
const usedAt = ({ atMillis, usedMillis }: Account, nowMillis: number): number =>
  Math.max(0, usedMillis - (nowMillis - atMillis) * shareCards.drawBudgetShare)

export class DrawBudget {
  readonly #accounts = new Map<string, Account>()

  /** Whether the environment has time left, or nobody else has drawn lately. */
  isOpen(environmentId: string, nowMillis: number): boolean {
    const account = this.#accounts.get(environmentId)
    if (account === undefined || usedAt(account, nowMillis) < shareCards.drawBudgetMillis)
      return true
    return !Array.from(this.#accounts).some(
      ([id, { atMillis }]) => id !== environmentId && nowMillis - atMillis < shareCards.waitMillis
    )
  }

  /** Books the time of a drawing. Accounts without use are forgotten. */
  use(environmentId: string, millis: number, nowMillis: number): void {
    const account = this.#accounts.get(environmentId)
    const before = account === undefined ? 0 : usedAt(account, nowMillis)
    this.#accounts.delete(environmentId)
    this.#accounts.set(environmentId, { usedMillis: before + millis, atMillis: nowMillis })
    for (const [id, each] of this.#accounts) {
      if (usedAt(each, nowMillis) > 0) break
      this.#accounts.delete(id)
    }
  }
}
