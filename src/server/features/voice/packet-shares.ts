/**
 * Shares of the packets that a media process may receive and send, by environment. All calls of a
 * process use one thread, where packets of one environment delay those of others.
 *
 * Between two refills an environment gets at most `share` times as many packets as remain free for
 * others. With a share of 4, one busy environment gets 80 % of them, and two get 44 % each. Pure.
 */
interface PacketSharesOptions {
  readonly perSecond: number
  readonly share: number
}

/** Maximum milliseconds of a refill. A paused process gets no more at once. */
const refillMaxMillis = 200

export class PacketShares {
  readonly #perMilli: number
  readonly #share: number
  readonly #taken = new Map<string, number>()
  readonly #refused = new Set<string>()
  #free = 0

  constructor({ perSecond, share }: PacketSharesOptions) {
    this.#perMilli = perSecond / 1000
    this.#share = share
  }

  /** Takes all of these packets or none. */
  take(environmentId: string, packets: number): boolean {
    const taken = (this.#taken.get(environmentId) ?? 0) + packets
    if (taken > this.#share * (this.#free - packets)) {
      this.#refused.add(environmentId)
      return false
    }
    this.#taken.set(environmentId, taken)
    this.#free -= packets
    return true
  }

  /**
   * Refills the packets of a time span; returns the environments that wanted more than their share
   * before.
   */
  refill(elapsedMillis: number): ReadonlySet<string> {
    const refused = new Set(this.#refused)
    this.#refused.clear()
    this.#taken.clear()
    this.#free = Math.min(elapsedMillis, refillMaxMillis) * this.#perMilli
    return refused
  }
}
