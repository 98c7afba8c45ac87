/** The signed-in player's stats (spec section 4.3). */
import { Effect } from "effect"
import type { StatsReported } from "#rpc/stats"
import type { Http } from "./http.ts"
import type { Tokens } from "./tokens.ts"

export interface ReportOptions {
  /**
   * Names this report: repeated under the same name within 24 hours, also after a restart, it counts
   * once. Without one, a report that is repeated by hand counts again.
   */
  readonly idempotencyKey?: string
}

export interface Stats {
  /**
   * The player's values for all time; a stat that was never reported is absent.
   *
   * @example
   * const { kills = 0 } = await client.stats.get()
   */
  get(): Promise<Readonly<Record<string, number>>>

  /**
   * Reports values of up to 64 stats; they combine as the config says. Values that the game's rules
   * refuse come back in `rejected`, each with a reason, and the others count.
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
