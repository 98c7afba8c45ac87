/**
 * The environments whose graces are held, because their players wait for admission. Nobody else's players
 * hold them: an environment that is busy keeps no seats of another one.
 */
import { Context } from "effect"

export const GraceHolds = Context.Reference("entities/grace-holds/GraceHolds", {
  defaultValue: (): {
    /** Since when players of the environment wait, Unix milliseconds; null when none does. */
    readonly heldFrom: (environmentId: string) => number | null
  } => ({ heldFrom: () => null })
})
