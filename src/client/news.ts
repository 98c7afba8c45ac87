/** Consent to news by mail: whether a sign-up screen may ask, and the player's choice. */
import { Effect } from "effect"
import type { Http } from "./http.ts"
import type { Tokens } from "./tokens.ts"

export interface News {
  /**
   * Whether a sign-up screen may ask for consent to news. Needs no player.
   *
   * @example
   * optInBox.hidden = !(await client.news.enabled())
   */
  enabled(): Promise<boolean>

  /**
   * Stores the choice and returns the stored one: always false if the player may not be asked.
   *
   * @example
   * await client.news.choose(optInBox.checked)
   */
  choose(optIn: boolean): Promise<boolean>
}

type Run = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

export const makeNews = (http: Http, tokens: Tokens, run: Run): News => ({
  enabled: () => run(Effect.map(http.newsEnabled, ({ enabled }) => enabled)),
  choose: (wanted) =>
    run(Effect.map(tokens.authorized(http.chooseNews(wanted)), ({ optIn }) => optIn))
})
