/** News by mail: whether a sign-up screen may ask, and what the player has chosen (spec section 2.2). */
import { Effect } from "effect"
import type { Http } from "./http.ts"
import type { Tokens } from "./tokens.ts"

export interface News {
  /**
   * May a sign-up screen ask whether the player wants news? It needs no player.
   *
   * @example
   * optInBox.hidden = !(await client.news.enabled())
   */
  enabled(): Promise<boolean>

  /**
   * Stores the choice. Answers what is stored, which is false where the player may not be asked.
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
