/** Sign-in methods of the signed-in player. */
import { authorized, updatePlayer, withRefreshToken } from "./authorized.ts"
import type { Module } from "./compose.ts"
import { inPath } from "./path-values.ts"
import type { LinkedIdentity, Method, Player } from "./wire.ts"

export interface Identities {
  /**
   * Lists the player's sign-in methods, oldest first. A guest has none.
   *
   * @example
   * for (const { provider, email } of await client.identities.list()) addRow(provider, email)
   */
  list(): Promise<ReadonlyArray<LinkedIdentity>>

  /**
   * Removes a sign-in method, and signs the player out on every other device. Rejects with
   * `last_login_method` if it is the only one.
   *
   * @example
   * const player = await client.identities.unlink("discord")
   */
  unlink(provider: Method): Promise<Player>
}

export const identities: Module<Identities> = ({ http, tokens }) => ({
  list: async () => {
    const { identities } = await authorized(tokens, (token) =>
      http.request("GET /v1/players/me/identities", { token })
    )
    return identities
  },
  unlink: async (provider) => {
    const params = inPath({ provider })
    const { player } = await withRefreshToken(tokens, (token, body) =>
      http.request("DELETE /v1/players/me/identities/{provider}", { token, params, body })
    )
    return updatePlayer(tokens, player)
  }
})
