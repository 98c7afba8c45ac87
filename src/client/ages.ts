/** Age band of the signed-in player, and the capabilities that it allows. */
import type { Effect } from "effect"
import type { AgeBand, AgeProfile, AgeSignal } from "#rpc/ages"
import type { Http } from "./http.ts"
import type { Tokens } from "./tokens.ts"

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

type Run = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

export const makeAges = (http: Http, tokens: Tokens, run: Run): Ages => ({
  profile: () => run(tokens.authorized(http.ageProfile)),
  declare: (band) => run(tokens.authorized(http.declareAge(band))),
  signal: (signal) => run(tokens.authorized(http.signalAge(signal)))
})
