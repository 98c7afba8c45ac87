/** Sign-in methods of the signed-in player. */
import { Effect } from "effect"
import type { LinkedIdentity, Method } from "#rpc/identities"
import type { Player } from "#rpc/players"
import type { Http } from "./http.ts"
import type { Tokens } from "./tokens.ts"

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

type Run = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

export const makeIdentities = (http: Http, tokens: Tokens, run: Run): Identities => ({
  list: () => run(Effect.map(tokens.authorized(http.identities), ({ identities }) => identities)),
  unlink: (provider) =>
    run(
      Effect.flatMap(
        tokens.withRefreshToken((proof) => http.unlink(provider, proof)),
        ({ player }) => Effect.as(tokens.update(player), player)
      )
    )
})
