/** Session transfer to another browser or device. */
import { authorized } from "./authorized.ts"
import type { Module } from "./compose.ts"
import type { KeyHeader } from "./repeats.ts"
import { endOf, spend } from "./spend.ts"
import type { Player, TransferCode } from "./wire.ts"

export interface Transfer {
  /**
   * Creates a code for another browser, for example to leave the in-app browser of another app. It works
   * once, for `expiresIn` seconds. Rejects with `share_inAppBrowser_disabled`.
   *
   * @example
   * const { code } = await client.transfer.create()
   * show(`Open game.example.com in your browser and enter ${code}`)
   */
  create(): Promise<TransferCode>

  /**
   * Signs in as the player who created the code, replacing the current session. Rejects with
   * `invalid_code`.
   *
   * @example
   * const player = await client.transfer.redeem(input.value)
   */
  redeem(code: string): Promise<Player>
}

export const transfer: Module<Transfer> = (core) => {
  const { http, tokens } = core
  return {
    create: () => authorized(tokens, (token) => http.request("POST /v1/auth/transfer", { token })),
    redeem: async (code) => {
      const redeemed = (headers: KeyHeader) =>
        tokens.signIn(() =>
          http.request("POST /v1/auth/transfer/redeem", { body: { code }, headers })
        )
      return (await spend(core, "redeem", endOf(code), redeemed)).player
    }
  }
}
