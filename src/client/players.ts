/** The account of the signed-in player. */
import { authorized, rename, updatePlayer, withRefreshToken } from "./authorized.ts"
import type { Module } from "./compose.ts"
import { inPath } from "./path-values.ts"
import type { Profile } from "./tokens.ts"
import type { Player, PlayerExport, Sanction } from "./wire.ts"

export interface Players {
  /**
   * Returns the signed-in player, as stored by the service.
   *
   * @example
   * const { id, displayName, isGuest } = await client.players.me()
   */
  me(): Promise<Player>

  /**
   * Renames the signed-in player; 1 to 32 characters. Returns the player.
   *
   * @example
   * await client.players.update({ displayName: "Countess" })
   */
  update(changes: Required<Profile>): Promise<Player>

  /**
   * Exports everything that the service stores about the player, as one JSON object.
   *
   * @example
   * download(JSON.stringify(await client.players.export(), null, 2))
   */
  export(): Promise<PlayerExport>

  /**
   * Lists the player's bans, newest first, with their appeals.
   *
   * @example
   * const [ban] = (await client.players.sanctions()).filter(({ active }) => active)
   */
  sanctions(): Promise<ReadonlyArray<Sanction>>

  /**
   * Appeals against one ban of the signed-in player, once, with 1 to 2000 characters. A ban that has
   * ended the session is appealed with `sessions.appeal`. Rejects with `already_appealed` or
   * `sanction_inactive`.
   *
   * @example
   * await client.players.appeal(ban.id, "It was my brother.")
   */
  appeal(sanctionId: string, message: string): Promise<Sanction>

  /**
   * Deletes the player and everything stored about it, permanently. A player with an email must confirm
   * with the password, or the call rejects with `invalid_credentials`. For others the session suffices.
   *
   * @example
   * await client.players.delete({ password })
   */
  delete(proof?: { readonly password?: string }): Promise<void>
}

export const players: Module<Players> = ({ http, tokens }) => ({
  me: async () => {
    const { player } = await authorized(tokens, (token) =>
      http.request("GET /v1/players/me", { token })
    )
    return updatePlayer(tokens, player)
  },
  update: (profile) => rename(http, tokens, profile),
  export: () => authorized(tokens, (token) => http.request("GET /v1/players/me/export", { token })),
  sanctions: async () => {
    const { sanctions } = await authorized(tokens, (token) =>
      http.request("GET /v1/players/me/sanctions", { token })
    )
    return sanctions
  },
  appeal: async (sanctionId, message) => {
    const input = { params: inPath({ sanctionId }), body: { message } }
    const { sanction } = await authorized(tokens, (token) =>
      http.request("POST /v1/players/me/sanctions/{sanctionId}/appeal", { token, ...input })
    )
    return sanction
  },
  delete: async ({ password } = {}) => {
    const route = "DELETE /v1/players/me"
    await (password === undefined
      ? withRefreshToken(tokens, (token, body) => http.request(route, { token, body }))
      : authorized(tokens, (token) => http.request(route, { token, body: { password } })))
    await tokens.exclusive(() => tokens.locked(() => tokens.signOutAllTabs()))
  }
})
