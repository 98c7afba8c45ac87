/** The account of the signed-in player. */
import { Effect } from "effect"
import type { PlayerExport } from "#rpc/player-data"
import type { Player } from "#rpc/players"
import type { Http, Profile } from "./http.ts"
import type { Tokens } from "./tokens.ts"

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
   * Deletes the player and everything stored about it, permanently. A player with an email must confirm
   * with the password, or the call rejects with `invalid_credentials`. For others the session suffices.
   *
   * @example
   * await client.players.delete({ password })
   */
  delete(proof?: { readonly password?: string }): Promise<void>
}

type Run = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

export const makePlayers = (http: Http, tokens: Tokens, run: Run): Players => {
  const remember = ({ player }: { readonly player: Player }) =>
    Effect.as(tokens.update(player), player)
  return {
    me: () => run(Effect.flatMap(tokens.authorized(http.me), remember)),
    update: (changes) => run(Effect.flatMap(tokens.authorized(http.update(changes)), remember)),
    export: () => run(tokens.authorized(http.export)),
    delete: ({ password } = {}) => {
      const deleted =
        password === undefined
          ? tokens.withRefreshToken(http.delete)
          : tokens.authorized(http.delete({ password }))
      return run(Effect.andThen(deleted, Effect.asVoid(tokens.discard())))
    }
  }
}
