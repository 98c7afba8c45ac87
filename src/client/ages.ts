/** Age band of the signed-in player, and the capabilities that it allows. */
import { authorized } from "./authorized.ts"
import type { Module } from "./compose.ts"
import type { AgeBand, AgeProfile, AgeSignal } from "./wire.ts"

export interface Ages {
  /**
   * Returns the effective age band, the declared one, and the player's capabilities.
   *
   * @example
   * const { capabilities, declaredAgeBand } = await client.ages.profile()
   * if (declaredAgeBand === null) askAge()
   */
  profile(): Promise<AgeProfile>

  /**
   * Declares the age band. The first declaration is free, later ones must be stricter, else it rejects
   * with `age_change_not_allowed`. Returns the new profile.
   *
   * @example
   * await client.ages.declare("teen")
   */
  declare(band: AgeBand): Promise<AgeProfile>

  /**
   * Reports the age signal of the device's platform. It only makes the band stricter.
   *
   * @example
   * await client.ages.signal({ platform: "ios", status: "declared", lowerBound: 13, upperBound: 15 })
   */
  signal(signal: AgeSignal): Promise<AgeProfile>
}

export const ages: Module<Ages> = ({ http, tokens }) => ({
  profile: () => authorized(tokens, (token) => http.request("GET /v1/social/profile", { token })),
  declare: (band) =>
    authorized(tokens, (token) => http.request("PUT /v1/social/age", { token, body: { band } })),
  signal: (signal) =>
    authorized(tokens, (token) =>
      http.request("POST /v1/players/me/age-signal", { token, body: signal })
    )
})
