/** Consent to news by mail: whether a sign-up screen may ask, and the player's choice. */
import { authorized } from "./authorized.ts"
import type { Module } from "./compose.ts"

export interface News {
  /**
   * Whether a sign-up screen may ask for consent to news. Needs no player.
   *
   * @example
   * question.hidden = !(await client.news.enabled())
   */
  enabled(): Promise<boolean>

  /**
   * Stores the choice and returns the stored one: always false if the player may not be asked.
   *
   * @example
   * await client.news.choose(checkbox.checked)
   */
  choose(optIn: boolean): Promise<boolean>
}

export const news: Module<News> = ({ http, tokens }) => ({
  enabled: async () => (await http.request("GET /v1/news/opt-in", {})).enabled,
  choose: async (wanted) => {
    const body = { optIn: wanted }
    const { optIn } = await authorized(tokens, (token) =>
      http.request("PUT /v1/news/opt-in", { token, body })
    )
    return optIn
  }
})
