/** Stats of the signed-in player. */
import { authorized } from "./authorized.ts"
import type { Module } from "./compose.ts"
import type { StatsReported } from "./wire.ts"

export interface ReportOptions {
  /**
   * Identifies this report. Reports with the same key count once within 24 hours, even after a restart.
   * Without a key, a repeated report counts again.
   */
  readonly idempotencyKey?: string
}

export interface Stats {
  /**
   * Returns the player's all-time values. A stat without a report is absent.
   *
   * @example
   * const { kills = 0 } = await client.stats.get()
   */
  get(): Promise<Readonly<Record<string, number>>>

  /**
   * Reports values of up to 64 stats, which combine by the rules in the config. `rejected` lists the
   * values that integrity rules refused, with reasons; the others count. Returns the new values.
   *
   * @example
   * const { stats, rejected } = await client.stats.report({ kills: 3, best_lap: 61.4 })
   * show(stats.kills.daily)
   */
  report(values: Readonly<Record<string, number>>, options?: ReportOptions): Promise<StatsReported>
}

export const stats: Module<Stats> = ({ http, tokens }) => ({
  get: async () => {
    const { stats } = await authorized(tokens, (token) => http.request("GET /v1/stats", { token }))
    return stats
  },
  report: (values, { idempotencyKey } = {}) => {
    const headers: Record<string, string> =
      idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }
    const input = { headers, body: { stats: values } }
    return authorized(tokens, (token) => http.request("POST /v1/stats", { token, ...input }))
  }
})
