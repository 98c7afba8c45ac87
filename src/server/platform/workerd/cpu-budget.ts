/**
 * CPU time that a process may use in the long run, whatever uses it: calls, crons, timers, or work that
 * nobody asked for. Time repays what was used, evenly over a minute. Pure.
 */

const minuteMillis = 60_000
/** Share of the budget that must be repaid before calls begin again. Else they would come in bursts. */
const reopenShare = 0.25
/** Share of the budget by which calls under way may exceed it before the process ends. */
const overdraftShare = 0.1

export type BudgetState = "within" | "spent" | "overdrawn"

export class CpuBudget {
  readonly #perMinuteMillis: number
  #level: number
  #at: number
  #isSpent = false

  /** `perMinuteMillis` of 0 means no limit. */
  constructor(perMinuteMillis: number, now: number) {
    this.#perMinuteMillis = perMinuteMillis
    this.#level = perMinuteMillis
    this.#at = now
  }

  /** Milliseconds of CPU time used within about the last minute. */
  usedMillis(now: number): number {
    this.#repay(now)
    return this.#perMinuteMillis - this.#level
  }

  charge(cpuMillis: number, now: number): BudgetState {
    if (this.#perMinuteMillis === 0) return "within"
    this.#repay(now)
    this.#level -= cpuMillis
    if (this.#level <= 0) this.#isSpent = true
    if (this.#level < -this.#perMinuteMillis * overdraftShare) return "overdrawn"
    return this.#isSpent ? "spent" : "within"
  }

  /** Milliseconds until calls may begin again; 0 if they may now. */
  waitMillis(now: number): number {
    this.#repay(now)
    if (!this.#isSpent) return 0
    const missing = this.#perMinuteMillis * reopenShare - this.#level
    return (missing / this.#perMinuteMillis) * minuteMillis
  }

  #repay(now: number): void {
    const repaid = ((now - this.#at) * this.#perMinuteMillis) / minuteMillis
    this.#at = now
    this.#level = Math.min(this.#perMinuteMillis, this.#level + repaid)
    if (this.#level >= this.#perMinuteMillis * reopenShare) this.#isSpent = false
  }
}
