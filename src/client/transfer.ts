/** Session transfer to another browser or device. */
import { Effect } from "effect"
import type { Player } from "#rpc/players"
import type { Http } from "./http.ts"
import type { Tokens } from "./tokens.ts"

export interface Transfer {
  /**
   * Creates a code for another browser, for example to leave the in-app browser of another app. It works
   * once, for `expiresIn` seconds. Rejects with `share_inAppBrowser_disabled`.
   *
   * @example
   * const { code } = await client.transfer.create()
   * show(`Open game.example.com in your browser and enter ${code}`)
   */
  create(): Promise<{ readonly code: string; readonly expiresIn: number }>

  /**
   * Signs in as the player who created the code, replacing the current session. Rejects with
   * `invalid_code`.
   *
   * @example
   * const player = await client.transfer.redeem(input.value)
   */
  redeem(code: string): Promise<Player>
}

type Run = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

export const makeTransfer = (http: Http, tokens: Tokens, run: Run): Transfer => ({
  create: () => run(tokens.authorized(http.issueTransfer)),
  redeem: (code) =>
    run(Effect.map(tokens.signIn(http.redeemTransfer(code)), ({ player }) => player))
})
