/** The signed-in player's age group, and what follows from it (spec sections 2.2 and 4.1). */
import type { Effect } from "effect"
import type { AgeBand, AgeProfile, AgeSignal } from "#rpc/ages"
import type { Http } from "./http.ts"
import type { Tokens } from "./tokens.ts"

export interface Ages {
  /**
   * The age band that counts, the declared one, and what the player may do.
   *
   * @example
   * const { capabilities, declaredAgeBand } = await client.ages.profile()
   * if (declaredAgeBand === null) askAge()
   */
  profile(): Promise<AgeProfile>

  /**
   * Declares the age band: any the first time, afterwards only a stricter one. Rejects with
   * `age_change_not_allowed`.
   *
   * @example
   * await client.ages.declare("teen")
   */
  declare(band: AgeBand): Promise<AgeProfile>

  /**
   * Passes on what the device's platform says of its user's age; it only ever makes the band stricter.
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
