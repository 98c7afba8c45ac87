/**
 * CPU time of the calls that a process handles. From outside nobody can see which call runs, so each
 * interval of CPU time is divided among the calls under way. Pure.
 */

/** The CPU time of one call, in milliseconds. */
export interface CpuAccount {
  used: number
  /** The most that the call may use. */
  readonly limit: number
}

/** CPU time without a result that is never too much: several calls may begin before one of them ends. */
const unaccountedCpuMillis = 2000
/** Calls that may use all of their CPU time before one of them ends. */
const heavyCallsAtOnce = 4

export class CpuAccounts {
  readonly #open = new Set<CpuAccount>()
  /**
   * CPU time that no call that has ended explains. Beside many calls that wait, a call that never ends has
   * a small share only.
   */
  #unaccounted = 0
  /** CPU time outside calls: sockets, alarms, work after the response. It is repaid with time. */
  #background = 0

  get size(): number {
    return this.#open.size
  }

  open(limit: number): CpuAccount {
    const account = { used: 0, limit }
    this.#open.add(account)
    return account
  }

  close(account: CpuAccount): void {
    this.#open.delete(account)
    this.#unaccounted = Math.max(0, this.#unaccounted - account.limit)
  }

  /** Records that the process has written output, so the work before it has ended. */
  progressed(): void {
    this.#background = 0
    this.#unaccounted = 0
  }

  /** Removes all accounts of a process that has ended. */
  clear(): void {
    this.#open.clear()
    this.#background = 0
    this.#unaccounted = 0
  }

  /**
   * Charges CPU time; returns whether an account is over its limit. Work outside calls may use
   * `backgroundLimit` milliseconds in a second, or without end while the process writes. All calls together
   * may use what a few of them may, as long as none ends and the process writes nothing.
   */
  charge(
    cpuMillis: number,
    elapsedMillis: number,
    backgroundLimit: number,
    hasSockets: boolean
  ): boolean {
    const hasBackground = hasSockets || this.#open.size === 0
    const share = cpuMillis / (this.#open.size + (hasBackground ? 1 : 0))
    let isOver = false
    for (const account of this.#open) {
      account.used += share
      if (account.used > account.limit) isOver = true
    }
    const repaid = (elapsedMillis * backgroundLimit) / 1000
    this.#background = Math.max(0, this.#background - repaid) + (hasBackground ? share : 0)
    // Without calls the background is all there is.
    this.#unaccounted = this.#open.size === 0 ? 0 : this.#unaccounted + cpuMillis
    const unaccountedMax = Math.max(unaccountedCpuMillis, backgroundLimit * heavyCallsAtOnce)
    return isOver || this.#background > backgroundLimit || this.#unaccounted > unaccountedMax
  }
}
