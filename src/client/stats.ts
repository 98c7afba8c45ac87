/** Stats of the signed-in player. */
import { Effect } from "effect"
import type { StatsReported } from "#rpc/stats"
import type { Http } from "./http.ts"
import type { Tokens } from "./tokens.ts"

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

type Run = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

export const makeStats = (http: Http, tokens: Tokens, run: Run): Stats => ({
  get: () => run(Effect.map(tokens.authorized(http.readStats), ({ stats }) => stats)),
  report: (values, { idempotencyKey } = {}) =>
    run(tokens.authorized(http.reportStats(values, idempotencyKey)))
})
