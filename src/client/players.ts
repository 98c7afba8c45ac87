/** The signed-in player's own account (spec section 4.1). */
import { Effect } from "effect"
import type { Player } from "#rpc/players"
import type { Http, Profile } from "./http.ts"
import type { Tokens } from "./tokens.ts"

export interface Players {
  /**
   * The signed-in player, as the service knows it now.
   *
   * @example
   * const { id, displayName, isGuest } = await client.players.me()
   */
  me(): Promise<Player>

  /**
   * Renames the signed-in player.
   *
   * @example
   * await client.players.update({ displayName: "Countess" })
   */
  update(changes: Required<Profile>): Promise<Player>
}

type Run = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

export const makePlayers = (http: Http, tokens: Tokens, run: Run): Players => {
  const remember = ({ player }: { readonly player: Player }) =>
    Effect.as(tokens.update(player), player)
  return {
    me: () => run(Effect.flatMap(tokens.authorized(http.me), remember)),
    update: (changes) => run(Effect.flatMap(tokens.authorized(http.update(changes)), remember))
  }
}
